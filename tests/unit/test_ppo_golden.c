/* GAE, the PPO loss with its derivatives, and AdamW against answers of stable-baselines3 and torch
 * (tests/golden/ppo, gen_ppo.py). */
#include "tests/support/tg_test.h"

#include "tests/support/rl_eval.h"

#include <stdlib.h>

/* Largest difference relative to max(1, |want|); two nulls are equal. */
static double difference(const json_t *got, const json_t *want) {
    if (json_is_array(want)) {
        if (json_array_size(got) != json_array_size(want)) return (double)INFINITY;
        double worst = 0;
        for (size_t i = 0; i < json_array_size(want); i++)
            worst = fmax(worst, difference(json_array_get(got, i), json_array_get(want, i)));
        return worst;
    }
    if (json_is_null(want)) return json_is_null(got) ? 0 : (double)INFINITY;
    if (!json_is_number(got)) return (double)INFINITY;
    double w = json_number_value(want);
    return fabs(json_number_value(got) - w) / fmax(1, fabs(w));
}

TEST(stable_baselines3_and_torch_agree) {
    FILE *f = fopen(tg_test_path("golden/ppo/cases.jsonl"), "r");
    REQUIRE(f);
    char *line = NULL;
    size_t cap = 0;
    int cases = 0;
    while (getline(&line, &cap, f) > 0) {
        tg_error err = {0};
        json_t *c = json_loads(line, 0, NULL), *got = NULL;
        if (CHECK(c)) {
            CHECK_OK(tg_rl_eval(json_object_get(c, "request"), &got, &err));
            const char *op =
                           json_string_value(json_object_get(json_object_get(c, "request"), "op")),
                       *key;
            json_t *want;
            json_object_foreach(json_object_get(c, "want"), key, want) {
                double d = difference(json_object_get(got, key), want);
                tg_check(d <= 2e-6, __FILE__, __LINE__, "case %d (%s): %s differs by %g", cases, op,
                         key, d);
            }
        }
        json_decref(c);
        json_decref(got);
        cases++;
    }
    free(line);
    fclose(f);
    CHECK(cases >= 11);
}

TEST(requests_that_make_no_sense_are_refused) {
    static const char *const bad[] = {
        "{}",
        "{\"op\":\"nlpo\"}",
        "{\"op\":\"gae\"}",
        "{\"op\":\"gae\",\"reward\":[1,2],\"value\":[1],\"start\":[1,0]}",
        "{\"op\":\"adamw\",\"backend\":\"none\",\"param\":[1],\"grads\":[]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tg_error err = {0};
        json_t *request = json_loads(bad[i], 0, NULL), *out;
        CHECK(tg_rl_eval(request, &out, &err) != TG_OK && !out && err.msg[0]);
        json_decref(request);
    }
}

TEST_MAIN
