/* The native layouts on any bytes. The first byte chooses a layout and what bad rows do; the rest is cut
 * at the byte 0x1d into the layout's files. A pool opens or says why not; what was checked at opening
 * can be read, and reads the same twice. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/support/pool_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILES = 3 };

static const struct layout {
    const char *pool, *args;
    const char *files[MAX_FILES + 1];
} layouts[] = {
    {"imdb_seq2seq", "{\"seed\": 1}", {"train/neg/1_1.txt", "train/pos/2_9.txt"}},
    {"commongen", "{\"group\": false}", {"commongen.train.jsonl"}},
    {"commongen", "{\"group\": true}", {"train.csv"}},
    {"totto", "{\"representation\": \"fulltable\"}", {"totto_train_data.jsonl"}},
    {"totto", "{\"representation\": \"subtable\"}", {"totto_train_data.jsonl"}},
    {"cnn_daily_mail", "{\"truncate_article\": 9}", {"train/a.story", "train/b.story"}},
    {"cnn_daily_mail", "{}", {"cnn/stories/x.story", "all_train.txt"}},
    {"narrative_qa", "{}", {"train.tsv"}},
    {"narrative_qa", "{}", {"qaps.csv", "summaries.csv"}},
    {"iwslt2017en_de", "{}", {"train.en", "train.de"}},
    {"iwslt2017en_de", "{}", {"train.tags.en", "train.tags.de"}},
    {"iwslt2017en_de", "{}", {"train.en.sgm", "train.de.sgm"}},
    {"daily_dialog",
     "{\"context_size\": 1}",
     {"dialogues_train.txt", "dialogues_act_train.txt", "dialogues_emotion_train.txt"}},
    {"crd3",
     "{\"max_context_size\": 2}",
     {"data/cleaned data/E.json", "data/aligned data/train_files",
      "data/aligned data/c=1/F_1.json"}},
    {"tldr_preference", "{}", {"train.jsonl"}},
    {"csv", "{\"template\": \"{a} {b.c}\", \"filter\": \"a != 1\"}", {"train.csv"}},
    {"text", "{\"unit\": \"line\", \"prompt\": \"text\"}", {"train.txt"}},
};

static const char *folder(void) {
    static char dir[64];
    if (!*dir) {
        snprintf(dir, sizeof dir, "/dev/shm/textgen-fuzz-XXXXXX");
        if (!mkdtemp(dir)) snprintf(dir, sizeof dir, "/tmp/textgen-fuzz-XXXXXX");
        if (!tg_path_is_dir(dir) && !mkdtemp(dir)) *dir = '\0';
    }
    return dir;
}

static void remove_folder(void) {
    tg_error err;
    if (tg_dir_remove(folder(), &err) != TG_OK) fprintf(stderr, "%s\n", err.msg);
}

static bool write_part(const char *name, const uint8_t *bytes, size_t len) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    if (tg_dir_create(path, NULL) != TG_OK) return false;
    *slash = '/';
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool ok = fwrite(bytes, 1, len, f) == len;
    return !fclose(f) && ok;
}

static void read_all(const tg_datapool *p) {
    tg_arena first = {0}, second = {0};
    tg_error err = {0};
    for (uint64_t i = 0; i < p->count && i < 200; i++) {
        tg_sample a, b;
        tg_arena_reset(&first);
        tg_arena_reset(&second);
        tg_status st = tg_datapool_get(p, i, &first, &a, &err);
        if (st != TG_OK) fprintf(stderr, "%s: %s\n", p->ops->entry.name, err.msg);
        TG_ASSERT(st == TG_OK);
        TG_ASSERT(tg_datapool_get(p, i, &second, &b, &err) == TG_OK);
        TG_ASSERT(!strcmp(a.prompt_text, b.prompt_text) && !strcmp(a.id, b.id));
        TG_ASSERT(a.n_references == b.n_references && !strcmp(a.meta_json, b.meta_json));
    }
    tg_arena_fini(&first);
    tg_arena_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool prepared;
    if (size == 0 || !*folder()) return 0;
    if (!prepared) atexit(remove_folder);
    prepared = true;
    tg_log_set_level(TG_LOG_ERROR);
    const struct layout *l = &layouts[(data[0] >> 1) % TG_COUNT_OF(layouts)];
    bool skip = data[0] & 1;
    data++, size--;
    if (tg_dir_remove(folder(), NULL) != TG_OK) return 0;
    for (size_t i = 0; l->files[i]; i++) {
        const uint8_t *end = memchr(data, 0x1d, size);
        size_t len = end ? (size_t)(end - data) : size;
        if (!write_part(l->files[i], data, len)) return 0;
        size -= end ? len + 1 : len;
        data += end ? len + 1 : len;
    }
    json_t *args = json_loads(l->args, 0, NULL);
    json_object_set_new(args, "path", json_string(folder()));
    json_object_set_new(args, "on_bad_row", json_string(skip ? "skip" : "fail"));
    tg_arena arena = {0};
    tg_datapool p;
    tg_error err = {0};
    tg_status st = pool_case_open(l->pool, args, NULL, TG_SPLIT_TRAIN, &arena, &p, &err);
    json_decref(args);
    TG_ASSERT(st == TG_OK || (err.status == st && *err.msg));
    if (st == TG_OK) read_all(&p);
    tg_datapool_close(&p);
    tg_arena_fini(&arena);
    return 0;
}
