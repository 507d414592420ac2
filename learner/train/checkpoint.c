/* Saving, finding, verifying and pruning checkpoints. Invariants: a folder called checkpoint_<k> is
 * complete; nothing is loaded before all of it has been verified. */
#include "learner/train/checkpoint.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "learner/train/checkpoint_nets.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1 };

static char *checkpoints_dir(const char *run_dir) {
    return tg_path_join(run_dir, "checkpoints");
}

/* ---- state.json --------------------------------------------------------------------------- */

static void set_hex(json_t *o, const char *key, uint64_t value) {
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    json_object_set_new(o, key, json_string(text));
}

static bool get_hex(const json_t *o, const char *key, uint64_t *value) {
    const char *text = json_string_value(json_object_get(o, key));
    char *end = NULL;
    if (!text || !*text) return false;
    *value = strtoull(text, &end, 16);
    return *end == 0;
}

static json_t *state_to_json(const tg_run_state *s) {
    json_t *o = json_object(), *sizes = json_object();
    json_object_set_new(o, "format", json_integer(FORMAT));
    json_object_set_new(o, "iteration", json_integer(s->iteration));
    json_object_set_new(o, "evaluated", json_boolean(s->evaluated));
    set_hex(o, "next_episode", s->next_episode);
    json_object_set_new(o, "kl_coeff", json_real(s->kl_coeff));
    json_object_set_new(o, "loss_sum", json_real(s->loss_sum));
    json_object_set_new(o, "loss_n", json_integer(s->loss_n));
    json_object_set_new(o, "skipped", json_integer(s->skipped));
    if (isfinite(s->score)) json_object_set_new(o, "score", json_real(s->score));
    set_hex(o, "seed", s->seed);
    set_hex(o, "digest", s->digest);
    for (int i = 0; i < TG_ARTIFACTS; i++)
        json_object_set_new(sizes, tg_artifact_names[i], json_integer(s->sizes[i]));
    json_object_set_new(o, "sizes", sizes);
    return o;
}

static bool state_from_json(tg_run_state *s, const json_t *o) {
    const json_t *iteration = json_object_get(o, "iteration"), *kl = json_object_get(o, "kl_coeff");
    const json_t *loss_sum = json_object_get(o, "loss_sum"), *loss_n = json_object_get(o, "loss_n");
    const json_t *score = json_object_get(o, "score"), *sizes = json_object_get(o, "sizes");
    *s = (tg_run_state){0};
    bool ok = json_integer_value(json_object_get(o, "format")) == FORMAT &&
              json_is_integer(iteration) && json_is_real(kl) && json_is_real(loss_sum) &&
              json_is_integer(loss_n) && get_hex(o, "next_episode", &s->next_episode) &&
              get_hex(o, "seed", &s->seed) && get_hex(o, "digest", &s->digest);
    s->iteration = json_integer_value(iteration);
    s->evaluated = json_is_true(json_object_get(o, "evaluated"));
    s->kl_coeff = json_real_value(kl);
    s->loss_sum = json_real_value(loss_sum);
    s->loss_n = json_integer_value(loss_n);
    s->skipped = json_integer_value(json_object_get(o, "skipped")); /* older ones: 0 */
    s->score = json_is_real(score) ? json_real_value(score) : (double)NAN;
    for (int i = 0; i < TG_ARTIFACTS; i++) {
        const json_t *size = json_object_get(sizes, tg_artifact_names[i]);
        ok = ok && json_is_integer(size);
        s->sizes[i] = json_integer_value(size);
    }
    return ok;
}

/* The text of a state, with a checksum of itself. */
static char *dump_checked(json_t *o) {
    json_object_del(o, "check");
    char *bare = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    if (!bare) return NULL;
    set_hex(o, "check", tg_hash64(bare, strlen(bare)));
    free(bare);
    return json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS);
}

static tg_status load_checked(const char *folder, json_t **out, tg_error *err) {
    char *path = tg_path_join(folder, "state.json");
    tg_buf text = {0};
    tg_status st = path ? tg_file_read(path, 1 << 20, &text, err) : tg_fail_nomem(err, 0);
    json_t *o = st == TG_OK && text.len
                    ? json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL)
                    : NULL;
    uint64_t check = 0, found = 1;
    if (get_hex(o, "check", &check)) {
        json_object_del(o, "check");
        char *bare = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
        if (bare) found = tg_hash64(bare, strlen(bare));
        free(bare);
    }
    if (st == TG_OK && check != found) st = tg_fail(err, TG_DATA, "%s is damaged", path);
    if (st != TG_OK) {
        json_decref(o);
        o = NULL;
    }
    *out = o;
    tg_buf_fini(&text);
    tg_free(path);
    return st;
}

/* ---- saving ------------------------------------------------------------------------------- */

static tg_status write_state(const char *folder, json_t *o, int64_t optimizer_steps,
                             tg_error *err) {
    json_object_set_new(o, "optimizer_steps", json_integer(optimizer_steps));
    char *text = dump_checked(o), *path = tg_path_join(folder, "state.json");
    tg_status st =
        text && path ? tg_file_write_atomic(path, text, strlen(text), err) : tg_fail_nomem(err, 0);
    free(text);
    tg_free(path);
    return st;
}

static tg_status write_all(const char *folder, const tg_run_state *state,
                           const tg_checkpoint_nets *nets, tg_error *err) {
    tg_status st = tg_dir_remove(folder, err); /* of an interrupted save */
    if (st == TG_OK) st = tg_dir_create(folder, err);
    json_t *o = state_to_json(state), *sums = json_object();
    for (int i = 0; st == TG_OK && i < tgi_net_files(nets); i++) {
        tgi_net_file f = tgi_net_file_at(nets, i);
        uint32_t crc = 0;
        st = tgi_net_write(folder, &f, &crc, err);
        json_object_set_new(sums, f.name, json_integer(crc));
    }
    json_object_set_new(o, "crc32c", sums);
    if (st == TG_OK) st = write_state(folder, o, tg_optim_steps(nets->optim), err);
    if (st == TG_OK) st = tg_dir_sync(folder, err);
    json_decref(o);
    return st;
}

/* The fresh folder becomes `final`. One that is there is exchanged in one step, where the file system can: a process that is killed
 * between two would leave no checkpoint of this number, which may be the only one. */
static tg_status put_in_place(const char *fresh, const char *final, tg_error *err) {
    if (!renameat2(AT_FDCWD, fresh, AT_FDCWD, final, RENAME_EXCHANGE)) {
        tg_status st = tg_dir_sync_parent(final, err);
        return st == TG_OK ? tg_dir_remove(fresh, err) : st;
    }
    tg_status st = tg_dir_remove(final, err);
    if (st == TG_OK && rename(fresh, final) != 0)
        st = tg_fail_errno(err, TG_IO, "%s: cannot be renamed", fresh);
    return st == TG_OK ? tg_dir_sync_parent(final, err) : st;
}

tg_status tg_checkpoint_save(const char *run_dir, const tg_run_state *state,
                             const tg_checkpoint_nets *nets, tg_error *err) {
    char *base = checkpoints_dir(run_dir);
    tg_buf final = {0}, beside = {0};
    tg_buf_printf(&final, "%s/checkpoint_%" PRId64, base ? base : "", state->iteration);
    tg_buf_printf(&beside, "%s.tmp", final.data ? final.data : "");
    tg_status st =
        !base || final.failed || beside.failed ? tg_fail_nomem(err, 0) : tg_dir_create(base, err);
    if (st == TG_OK) st = write_all(beside.data, state, nets, err);
    if (st == TG_OK) st = put_in_place(beside.data, final.data, err);
    if (st == TG_OK) tg_log_info("checkpoint", "saved %s", final.data);
    tg_buf_fini(&final);
    tg_buf_fini(&beside);
    tg_free(base);
    return st;
}

/* ---- finding ------------------------------------------------------------------------------ */

static int by_number_descending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Numbers of the checkpoint folders, newest first; owned. */
static tg_status list_checkpoints(const char *base, int64_t **out, int *n, tg_error *err) {
    *out = NULL;
    *n = 0;
    DIR *dir = opendir(base);
    if (!dir) return TG_OK; /* none yet */
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        int64_t number;
        if (!tg_str_starts(e->d_name, "checkpoint_") ||
            !tg_parse_i64(e->d_name + strlen("checkpoint_"), &number))
            continue;
        int64_t *grown = tg_realloc_array(*out, (size_t)*n + 1, sizeof *grown);
        if (grown) {
            *out = grown;
            grown[(*n)++] = number;
        } else {
            st = tg_fail_nomem(err, (size_t)*n * sizeof *grown);
        }
    }
    closedir(dir);
    if (*n) qsort(*out, (size_t)*n, sizeof **out, by_number_descending);
    return st;
}

static tg_status check_identity(const tg_run_state *found, const tg_run_state *wanted,
                                tg_error *err) {
    if (found->seed != wanted->seed)
        return tg_fail(err, TG_DATA,
                       "it belongs to a run with seed %" PRIu64 ", this one has %" PRIu64,
                       found->seed, wanted->seed);
    if (found->digest != wanted->digest)
        return tg_fail(err, TG_DATA, "it belongs to a run with another config");
    return TG_OK;
}

/* Verifies everything, then loads it. */
static tg_status load_one(const char *folder, const char *run_dir, tg_run_state *state,
                          const tg_checkpoint_nets *nets, tg_error *err) {
    json_t *o = NULL;
    tg_status st = load_checked(folder, &o, err);
    tg_run_state found;
    if (st == TG_OK && !state_from_json(&found, o))
        st = tg_fail(err, TG_DATA, "%s/state.json lacks a field or is of another version", folder);
    if (st == TG_OK) st = check_identity(&found, state, err);
    const json_t *sums = json_object_get(o, "crc32c");
    for (int i = 0; st == TG_OK && i < tgi_net_files(nets); i++) {
        tgi_net_file f = tgi_net_file_at(nets, i);
        const json_t *sum = json_object_get(sums, f.name);
        st = json_is_integer(sum)
                 ? tgi_net_verify(folder, &f, (uint32_t)json_integer_value(sum), err)
                 : tg_fail(err, TG_DATA, "it has no %s", f.name);
    }
    if (st == TG_OK) st = tg_artifacts_truncate(run_dir, found.sizes, err);
    for (int i = 0; st == TG_OK && i < tgi_net_files(nets); i++) {
        tgi_net_file f = tgi_net_file_at(nets, i);
        st = tgi_net_read(folder, &f, err);
    }
    if (st == TG_OK) {
        *state = found;
        tg_optim_set_steps(nets->optim, json_integer_value(json_object_get(o, "optimizer_steps")));
    }
    json_decref(o);
    return st;
}

tg_status tg_checkpoint_resume(const char *run_dir, tg_run_state *state,
                               const tg_checkpoint_nets *nets, bool *found, tg_error *err) {
    *found = false;
    char *base = checkpoints_dir(run_dir);
    int64_t *numbers = NULL;
    int n = 0;
    tg_status st = base ? list_checkpoints(base, &numbers, &n, err) : tg_fail_nomem(err, 0);
    tg_error why = {0};
    for (int i = 0; st == TG_OK && i < n && !*found; i++) {
        tg_buf folder = {0};
        tg_buf_printf(&folder, "%s/checkpoint_%" PRId64, base, numbers[i]);
        tg_status one = folder.failed ? tg_fail_nomem(&why, 0)
                                      : load_one(folder.data, run_dir, state, nets, &why);
        *found = one == TG_OK;
        if (one == TG_NOMEM) st = tg_fail(err, one, "%s", why.msg);
        if (*found)
            tg_log_info("checkpoint", "going on from %s", folder.data);
        else
            tg_log_warn("checkpoint", "skipping %s: %s", folder.data ? folder.data : "", why.msg);
        tg_buf_fini(&folder);
    }
    if (st == TG_OK && n && !*found)
        st = tg_fail(err, TG_DATA,
                     "%s: none of the %d checkpoints can be used (the last one tried: %s); "
                     "start anew in another run folder",
                     base, n, why.msg);
    tg_free(numbers);
    tg_free(base);
    return st;
}

/* ---- pruning ------------------------------------------------------------------------------ */

static double score_of(const char *base, int64_t number) {
    tg_buf folder = {0};
    tg_buf_printf(&folder, "%s/checkpoint_%" PRId64, base, number);
    json_t *o = NULL;
    tg_error ignored;
    tg_run_state s;
    double score = -(double)INFINITY;
    if (!folder.failed && load_checked(folder.data, &o, &ignored) == TG_OK &&
        state_from_json(&s, o) && !isnan(s.score))
        score = s.score;
    json_decref(o);
    tg_buf_fini(&folder);
    return score;
}

static tg_status remove_leftovers(const char *base, tg_error *err) {
    DIR *dir = opendir(base);
    if (!dir) return TG_OK;
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        if (!tg_str_starts(e->d_name, "checkpoint_") || !tg_str_ends(e->d_name, ".tmp")) continue;
        char *path = tg_path_join(base, e->d_name);
        st = path ? tg_dir_remove(path, err) : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    closedir(dir);
    return st;
}

tg_status tg_checkpoint_prune(const char *run_dir, int64_t newest, int64_t keep, bool keep_best,
                              tg_error *err) {
    char *base = checkpoints_dir(run_dir);
    int64_t *numbers = NULL, best = -1;
    int n = 0, first = 0;
    tg_status st = base ? remove_leftovers(base, err) : tg_fail_nomem(err, 0);
    if (st == TG_OK) st = list_checkpoints(base, &numbers, &n, err);
    while (first < n && numbers[first] > newest) first++;
    double best_score = -(double)INFINITY;
    for (int i = first; keep_best && keep > 0 && i < n; i++) {
        double score = score_of(base, numbers[i]);
        if (score > best_score) { /* among equals the newest */
            best_score = score;
            best = numbers[i];
        }
    }
    for (int64_t i = first + keep; st == TG_OK && keep > 0 && i < n; i++) {
        if (numbers[i] == best) continue;
        tg_buf folder = {0};
        tg_buf_printf(&folder, "%s/checkpoint_%" PRId64, base, numbers[i]);
        st = folder.failed ? tg_fail_nomem(err, 0) : tg_dir_remove(folder.data, err);
        tg_buf_fini(&folder);
    }
    tg_free(numbers);
    tg_free(base);
    return st;
}
