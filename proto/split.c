#include "proto/split.h"

#include <string.h>

static const char *const names[] = {
    [TG_SPLIT_TRAIN] = "train", [TG_SPLIT_VAL] = "val", [TG_SPLIT_TEST] = "test"};

const char *tg_split_name(tg_split split) {
    return split >= TG_SPLIT_TRAIN && split <= TG_SPLIT_TEST ? names[split] : "?";
}

static bool parse(const char *name, size_t len, tg_split *out) {
    for (int i = TG_SPLIT_TRAIN; i <= TG_SPLIT_TEST; i++) {
        if (strlen(names[i]) != len || strncmp(names[i], name, len) != 0) continue;
        *out = (tg_split)i;
        return true;
    }
    return false;
}

bool tg_split_parse(const char *name, tg_split *out) {
    return parse(name, strlen(name), out);
}

tg_status tg_split_list_parse(const char *text, tg_split_list *out, tg_error *err) {
    *out = (tg_split_list){.n = 0};
    for (const char *at = text;; at++) {
        const size_t len = strcspn(at, ",");
        tg_split split;
        bool good = parse(at, len, &split);
        for (int i = 0; good && i < out->n; i++) good = out->v[i] != split;
        if (!good)
            return tg_fail(err, TG_USAGE,
                           "expected train, val or test, each once, separated by commas; found "
                           "\"%s\"",
                           text);
        out->v[out->n++] = split;
        at += len;
        if (!*at) return TG_OK;
    }
}
