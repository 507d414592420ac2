/* Episodes by name. An episode is some megabytes of JSON with thousands of samples, so the last few
 * are kept parsed; that cache is the only state, behind a lock. Rows are shared by threads: jansson
 * counts references atomically, and nobody changes a row that was parsed from a file. */
#include "env-server/datapool/episodes.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "env-server/datapool/table/files.h"
#include "proto/split.h"

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

/* Of a list of chunks {TURNS: […]}: an episode with each numbered turn once, where it comes first. */
static json_t *merge_chunks(const json_t *chunks) {
    json_t *seen = json_object(), *turns = json_array(), *chunk, *turn;
    size_t i, k;
    json_array_foreach((json_t *)chunks, i, chunk) {
        json_array_foreach(json_object_get(chunk, "TURNS"), k, turn) {
            char number[32];
            snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                     json_integer_value(json_object_get(turn, "NUMBER")));
            if (json_object_get(seen, number)) continue;
            json_object_set_new(seen, number, json_true());
            json_array_append(turns, turn);
        }
    }
    json_decref(seen);
    return json_pack("{s:o}", "TURNS", turns);
}

static tg_status parse(const char *path, json_t **out, tg_error *err) {
    tg_buf text = {0};
    json_error_t e;
    tg_status st = tg_file_read(path, MAX_EPISODE, &text, err);
    if (st == TG_NOINPUT)
        st = tg_fail(err, TG_DATA, "not found, though the split's list names it");
    else if (st == TG_OK && !(*out = json_loadb(text.data ? text.data : "", text.len, 0, &e)))
        st = tg_fail(err, TG_DATA, "not JSON: %s (line %d)", e.text, e.line);
    tg_buf_fini(&text);
    if (st == TG_OK && json_is_array(*out)) {
        json_t *merged = merge_chunks(*out);
        json_decref(*out);
        if (!(*out = merged)) st = tg_fail_nomem(err, 1);
    }
    if (st == TG_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        st = tg_fail(err, TG_DATA, "expected a JSON object with TURNS");
    }
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

/* The first of the episode's files below aligned data, by name; owned, NULL: there is none. */
static tg_status find_aligned(const char *base, const char *name, char **out, tg_error *err) {
    tg_files folders = {0}, files = {0};
    char *dir = tg_path_join(base, "aligned data");
    tg_status st = dir ? tg_files_list(&folders, dir, NULL, err) : tg_fail_nomem(err, 1);
    *out = NULL;
    for (size_t i = 0; i < folders.n && st == TG_OK; i++)
        if (tg_path_is_dir(folders.paths[i]))
            st = tg_files_list(&files, folders.paths[i], ".json", err);
    for (size_t i = 0; i < files.n && st == TG_OK && !*out; i++) {
        const char *file = tg_file_name(files.paths[i]);
        if (strncmp(file, name, strlen(name)) != 0 || file[strlen(name)] != '_') continue;
        *out = files.paths[i];
        files.paths[i] = NULL;
    }
    tg_files_fini(&folders);
    tg_files_fini(&files);
    tg_free(dir);
    return st;
}

/* The cleaned episode; where only aligned data was unpacked, the episode as that has it. */
static tg_status add_episode(episodes *e, const char *base, const char *name, tg_error *err) {
    tg_buf path = {0};
    tg_buf_printf(&path, "%s/cleaned data/%s.json", base, name);
    if (path.failed) return tg_fail_nomem(err, strlen(name));
    char *aligned = NULL;
    tg_status st = tg_path_exists(path.data) ? TG_OK : find_aligned(base, name, &aligned, err);
    if (aligned) {
        tg_log_info("datapool", "%s is not there; its turns come from %s", path.data, aligned);
        tg_buf_fini(&path);
        return tg_files_push(&e->files, aligned, err);
    }
    if (st == TG_OK) return tg_files_push(&e->files, tg_buf_take(&path), err);
    tg_buf_fini(&path);
    return st;
}

static tg_status add_names(episodes *e, const char *base, const char *list, uint64_t *digest,
                           tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_file_read(list, MAX_LIST, &text, err);
    if (st == TG_OK) *digest = tg_hash64(text.data, text.len);
    for (char *at = text.data; st == TG_OK && at && *at;) {
        size_t n = strcspn(at, "\r\n");
        bool last = !at[n];
        at[n] = '\0';
        if (n) st = add_episode(e, base, at, err);
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
