/* What labels of classifiers are called. */
#include "common/base/file.h"
#include "common/nn/classifier.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static tg_error err;

/* The recorded BERT of three labels, its config.json with these names. */
static const char *named(const char *names) {
    static char folder[700];
    char path[800];
    const char *golden = tg_test_path("golden/encoders/bert");
    snprintf(folder, sizeof folder, "%s/named", tg_test_tmpdir());
    CHECK_OK(tg_dir_remove(folder, &err));
    CHECK_OK(tg_dir_create(folder, &err));
    snprintf(path, sizeof path, "%s/config.json", golden);
    json_t *o = json_load_file(path, 0, NULL), *v = json_loads(names, 0, NULL);
    CHECK(o && v);
    json_object_set_new(o, "id2label", v);
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK(!json_dump_file(o, path, 0));
    json_decref(o);
    char weights[800], *real = realpath(golden, NULL);
    snprintf(weights, sizeof weights, "%s/model.safetensors", real);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_EQ(symlink(weights, path), 0);
    free(real);
    return folder;
}

TEST(names_may_be_numbers) {
    static const struct {
        const char *id2label, *names[3];
    } cases[] = {
        {"{\"2\": \"c\", \"0\": \"a\", \"1\": \"\"}", {"a", "", "c"}},
        {"{\"0\": 1, \"1\": -2, \"2\": 0.5}", {"1", "-2", "0.5"}},
        {"{\"0\": true, \"1\": null, \"2\": 3}", {"true", "LABEL_1", "3"}},
        {"{\"1\": \"a\", \"2\": \"b\", \"3\": \"c\"}", {"LABEL_0", "a", "b"}},
    };
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_classifier *c = NULL;
        REQUIRE_OK(tg_classifier_open(&c, be, named(cases[i].id2label), 0, &err));
        REQUIRE(c->n_labels == 3);
        for (int k = 0; k < 3; k++) CHECK_STR(c->labels[k], cases[i].names[k]);
        tg_classifier_destroy(&c);
    }
    tg_backend_close(&be);
}

TEST_MAIN
