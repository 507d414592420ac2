/* Three files, line by line. */
#include "env-server/datapool/dialog_lines.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/str.h"

#include <string.h>

enum { TEXT, ACT, EMOTION, FILES };
static const char *const middle[FILES] = {"", "act_", "emotion_"};

typedef struct dialogs {
    tg_table lines[FILES];
} dialogs;

/* Pieces before each "__eou__"; what follows the last one is dropped, as the hub's loader does. */
static tg_status put_utterances(json_t *list, const char *line, tg_error *err) {
    static const char mark[] = "__eou__";
    for (const char *end; (end = strstr(line, mark)); line = end + strlen(mark))
        if (json_array_append_new(list, json_stringn_nocheck(line, (size_t)(end - line))))
            return tg_fail_nomem(err, 1);
    return TG_OK;
}

static tg_status put_numbers(json_t *list, const char *line, tg_error *err) {
    char number[24];
    while (*(line += strspn(line, " \t\r"))) {
        size_t n = strcspn(line, " \t\r");
        int64_t value;
        if (n < sizeof number) {
            memcpy(number, line, n);
            number[n] = '\0';
        }
        if (n >= sizeof number || !tg_parse_i64(number, &value))
            return tg_fail(err, TG_DATA, "\"%.*s\" is not a whole number", n < 20 ? (int)n : 20,
                           line);
        if (json_array_append_new(list, json_integer(value))) return tg_fail_nomem(err, 1);
        line += n;
    }
    return TG_OK;
}

static tg_status dialog_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const dialogs *d = t->state;
    json_t *lists[FILES] = {json_array(), json_array(), json_array()};
    tg_status st = lists[0] && lists[1] && lists[2] ? TG_OK : tg_fail_nomem(err, 1);
    for (size_t f = 0; f < FILES && st == TG_OK; f++) {
        json_t *row = NULL;
        st = f == TEXT ? d->lines[f].ops->row(&d->lines[f], i, &row, err)
                       : tg_table_row(&d->lines[f], i, &row, err);
        const char *line = json_string_value(json_object_get(row, "text"));
        if (st == TG_OK) st = (f == TEXT ? put_utterances : put_numbers)(lists[f], line, err);
        json_decref(row);
    }
    if (st == TG_OK && !(*out = json_pack("{s:O, s:O, s:O}", "dialog", lists[TEXT], "act",
                                          lists[ACT], "emotion", lists[EMOTION])))
        st = tg_fail_nomem(err, 1);
    for (size_t f = 0; f < FILES; f++) json_decref(lists[f]);
    return st;
}

static void dialog_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const dialogs *d = t->state;
    tg_table_where(&d->lines[TEXT], i, out, size);
}

static void dialogs_close(void *state) {
    dialogs *d = state;
    for (size_t f = 0; f < FILES; f++) tg_table_close(&d->lines[f]);
    tg_free(d);
}

/* ---- opening ------------------------------------------------------------------------------- */

static char *file_path(const char *root, const char *below, const char *name, size_t f) {
    tg_buf path = {0};
    tg_buf_printf(&path, "%s/", root);
    for (const char *c = below; *c; c++) { /* % stands for the split */
        if (*c == '%')
            tg_buf_puts(&path, name);
        else
            tg_buf_putc(&path, *c);
    }
    tg_buf_printf(&path, "dialogues_%s%s.txt", middle[f], name);
    return tg_buf_take(&path);
}

static tg_status open_all(const char *root, const char *below, const char *name, tg_table *out,
                          tg_error *err) {
    static const tg_table_ops ops = {dialog_row, dialog_where, dialogs_close};
    dialogs *d = tg_alloc(sizeof *d);
    tg_status st = d ? TG_OK : tg_fail_nomem(err, sizeof *d);
    uint64_t digest = 0;
    for (size_t f = 0; f < FILES && st == TG_OK; f++) {
        char *path = file_path(root, below, name, f);
        st = path ? tg_table_open_lines(&d->lines[f], path, err) : tg_fail_nomem(err, 1);
        uint64_t both[] = {digest, d->lines[f].digest};
        digest = tg_hash64(both, sizeof both);
        if (st == TG_OK && d->lines[f].count != d->lines[TEXT].count)
            st = tg_fail(err, TG_DATA, "%s: %llu lines, but the dialogues have %llu", path,
                         (unsigned long long)d->lines[f].count,
                         (unsigned long long)d->lines[TEXT].count);
        tg_free(path);
    }
    if (st == TG_OK)
        *out = (tg_table){&ops, d, d->lines[TEXT].count, digest, d->lines[TEXT].name};
    else if (d)
        dialogs_close(d);
    return st;
}

tg_status tg_dialog_lines_open(const char *root, tg_split split, tg_table *out, tg_error *err) {
    static const char *const below[] = {"", "%/", "%.zip/%/", "ijcnlp_dailydialog/%/",
                                        "ijcnlp_dailydialog/%.zip/%/"};
    static const char *const names[] = {"", "train", "validation", "test"};
    tg_status st = TG_OK;
    for (size_t i = 0; i < sizeof below / sizeof *below && st == TG_OK && !out->ops; i++) {
        char *path = file_path(root, below[i], names[split], TEXT);
        if (!path) return tg_fail_nomem(err, strlen(root));
        if (tg_path_exists(path)) st = open_all(root, below[i], names[split], out, err);
        tg_free(path);
    }
    return st;
}
