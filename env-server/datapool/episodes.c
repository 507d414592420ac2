/* Episodes by name. An episode is some megabytes of JSON with thousands of samples, so the last few
 * are kept parsed; that cache is the only state, behind a lock. */
#include "env-server/datapool/episodes.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "env-server/datapool/table/files.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LIST = 16 << 20, MAX_EPISODE = 256 << 20, KEPT = 8 };

typedef struct episodes {
    tg_files files;
    pthread_mutex_t lock;
    struct {
        uint64_t row;
        json_t *object; /* NULL: free */
    } kept[KEPT];
    unsigned next;
} episodes;

static tg_status parse(const char *path, json_t **out, tg_error *err) {
    tg_buf text = {0};
    json_error_t e;
    tg_status st = tg_file_read(path, MAX_EPISODE, &text, err);
    if (st == TG_NOINPUT)
        st = tg_fail(err, TG_DATA, "not found, though the split's list names it");
    else if (st == TG_OK && !(*out = json_loadb(text.data ? text.data : "", text.len, 0, &e)))
        st = tg_fail(err, TG_DATA, "not JSON: %s (line %d)", e.text, e.line);
    if (st == TG_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        st = tg_fail(err, TG_DATA, "expected a JSON object with TURNS");
    }
    tg_buf_fini(&text);
    return st;
}

static tg_status episode_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    episodes *e = t->state;
    pthread_mutex_lock(&e->lock);
    for (unsigned k = 0; k < KEPT && !*out; k++)
        if (e->kept[k].object && e->kept[k].row == i) *out = json_incref(e->kept[k].object);
    pthread_mutex_unlock(&e->lock);
    if (*out) return TG_OK;
    tg_status st = parse(e->files.paths[i], out, err);
    if (st != TG_OK) return st;
    pthread_mutex_lock(&e->lock);
    json_t *old = e->kept[e->next].object;
    e->kept[e->next].object = json_incref(*out);
    e->kept[e->next].row = i;
    e->next = (e->next + 1) % KEPT;
    pthread_mutex_unlock(&e->lock);
    json_decref(old);
    return TG_OK;
}

static void episode_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const episodes *e = t->state;
    snprintf(out, size, "%s", e->files.paths[i]);
}

static void episodes_close(void *state) {
    episodes *e = state;
    for (unsigned k = 0; k < KEPT; k++) json_decref(e->kept[k].object);
    pthread_mutex_destroy(&e->lock);
    tg_files_fini(&e->files);
    tg_free(e);
}

/* ---- opening ------------------------------------------------------------------------------- */

static tg_status add_names(episodes *e, const char *base, const char *list, uint64_t *digest,
                           tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_file_read(list, MAX_LIST, &text, err);
    if (st == TG_OK) *digest = tg_hash64(text.data, text.len);
    for (char *at = text.data; st == TG_OK && at && *at;) {
        size_t n = strcspn(at, "\r\n");
        bool last = !at[n];
        at[n] = '\0';
        if (n) {
            tg_buf path = {0};
            tg_buf_printf(&path, "%s/cleaned data/%s.json", base, at);
            st = tg_files_push(&e->files, tg_buf_take(&path), err);
        }
        at = last ? NULL : at + n + 1;
    }
    for (size_t i = 0; i < e->files.n; i++) {
        struct stat s = {0};
        (void)stat(e->files.paths[i], &s);
        uint64_t both[] = {*digest, (uint64_t)s.st_size};
        *digest = tg_hash64(both, sizeof both);
    }
    tg_buf_fini(&text);
    return st;
}

tg_status tg_episodes_open(const char *root, tg_split split, tg_table *out, tg_error *err) {
    static const tg_table_ops ops = {episode_row, episode_where, episodes_close};
    static const char *const below[] = {"data", "", "CRD3-master/data"};
    tg_status st = TG_OK;
    for (size_t i = 0; i < 3 && st == TG_OK && !out->ops; i++) {
        tg_buf base = {0}, list = {0};
        tg_buf_printf(&base, "%s%s%s", root, *below[i] ? "/" : "", below[i]);
        tg_buf_printf(&list, "%s/aligned data/%s_files", base.data ? base.data : "",
                      tg_split_name(split));
        episodes *e = base.failed || list.failed ? NULL : tg_alloc(sizeof *e);
        uint64_t digest = 0;
        if (!e) {
            st = tg_fail_nomem(err, sizeof *e);
        } else if (!tg_path_exists(list.data)) {
            tg_free(e);
        } else {
            pthread_mutex_init(&e->lock, NULL);
            st = add_names(e, base.data, list.data, &digest, err);
            if (st == TG_OK)
                *out =
                    (tg_table){&ops, e, e->files.n, digest, e->files.n ? e->files.paths[0] : NULL};
            else
                episodes_close(e);
        }
        tg_buf_fini(&base);
        tg_buf_fini(&list);
    }
    return st;
}
