/* Matching the tensors of a folder's files. Data stays in the maps; f32 goes from there straight to the device, other types and
 * transposed tensors through a small buffer. */
#include "common/nn/weights.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/finite.h"

#include <stdio.h>
#include <string.h>

enum {
    PIECE = 1 << 18
}; /* elements copied at a time: looked at and copied while a cache holds them */

static void shape_text(char *out, size_t size, int ndim, const int64_t *shape) {
    size_t at = (size_t)snprintf(out, size, "(");
    for (int i = 0; i < ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (at < size) snprintf(out + at, size - at, ")");
}

static tg_status check_tensor(const tg_st_tensor *t, const tg_param *p, const char *path,
                              tg_error *err) {
    bool same = t->ndim == p->ndim;
    int64_t wanted[4];
    for (int i = 0; i < p->ndim; i++) {
        wanted[i] = p->shape[i];
        same = same && t->shape[i] == wanted[i];
    }
    char expected[120], found[240];
    shape_text(expected, sizeof expected, p->ndim, wanted);
    shape_text(found, sizeof found, t->ndim, t->shape);
    if (!same)
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\": expected shape %s, found %s", path,
                       t->name, expected, found);
    if (t->dtype != TG_F32 && t->dtype != TG_F16 && t->dtype != TG_BF16 && t->dtype != TG_F64)
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\": expected F32, F16, BF16 or F64, found %s",
                       path, t->name, tg_dtype_name(t->dtype));
    return TG_OK;
}

/* Of equal shape, as check_tensor saw to. */
static bool same_numbers(const tg_st_tensor *a, const tg_st_tensor *b) {
    if (a->data == b->data && a->dtype == b->dtype && !a->strided && !b->strided) return true;
    float x[1024], y[1024];
    for (size_t at = 0; at < a->count; at += TG_COUNT_OF(x)) {
        size_t n = TG_MIN(a->count - at, TG_COUNT_OF(x));
        if (tg_st_to_f32_part(a, at, n, x, NULL) != TG_OK ||
            tg_st_to_f32_part(b, at, n, y, NULL) != TG_OK || memcmp(x, y, n * sizeof *x) != 0)
            return false;
    }
    return true;
}

/* A tied matrix may be stored under both of its names, with the same contents. */
static tg_status check_twin(const tg_st_tensor *a, const char *a_path, const tg_st_tensor *b,
                            const char *path, const tg_family *family, tg_error *err) {
    if (!strcmp(a->name, b->name)) /* readers would take one or the other */
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\" is in %s too", path, b->name, a_path);
    if (!tg_family_is_head(family, a->name) && !tg_family_is_head(family, b->name) &&
        !tg_family_is_embed_alias(family, a->name) && !tg_family_is_embed_alias(family, b->name))
        return tg_fail(err, TG_DATA, "%s: tensors \"%s\" and \"%s\" are the same parameter", path,
                       a->name, b->name);
    if (same_numbers(a, b)) return TG_OK;
    return tg_fail(err, TG_DATA, "%s: tensors \"%s\" and \"%s\" differ, but %s", path, a->name,
                   b->name,
                   family->head_by_file ? "are the embeddings that both stacks read"
                                        : "config.json ties them (untie with "
                                          "\"tie_word_embeddings\": false)");
}

static tg_status unknown_tensor(const tg_st_tensor *t, const tg_family *family, const tg_arch *arch,
                                const char *path, tg_error *err) {
    char found[240];
    shape_text(found, sizeof found, t->ndim, t->shape);
    const bool judge = !arch->labels && tg_family_is_labels(family, t->name);
    return tg_fail(err, TG_DATA,
                   "%s: tensor \"%.200s\" of shape %s is not part of a %s model with the sizes in "
                   "config.json%s",
                   path, t->name, found, family->name,
                   judge ? ", where architectures names no …ForSequenceClassification" : "");
}

static tg_status match_file(tg_weights *w, size_t file, const tg_family *family,
                            const tg_arch *arch, const tg_params *params, tg_error *err) {
    const char *path = w->set.paths[file];
    for (size_t i = 0; i < w->set.files[file].n; i++) {
        const tg_st_tensor *t = &w->set.files[file].tensors[i];
        int hit = tg_family_match(family, arch, params, t->name);
        if (hit == TG_MATCH_IGNORED) continue;
        if (hit < 0) return unknown_tensor(t, family, arch, path, err);
        tg_status st = check_tensor(t, &params->list[hit], path, err);
        if (st == TG_OK && w->found[hit])
            st = check_twin(w->found[hit], w->set.paths[w->found_in[hit]], t, path, family, err);
        if (st != TG_OK) return st;
        w->found[hit] = t;
        w->found_in[hit] = file;
    }
    return TG_OK;
}

static tg_status check_complete(const tg_weights *w, const tg_params *params, tg_error *err) {
    for (size_t i = 0; i < params->n; i++) {
        const tg_param *p = &params->list[i];
        if (w->found[i] || p->role == TG_ROLE_VALUE_W || p->fixed) continue;
        int64_t wanted[4];
        for (int d = 0; d < p->ndim; d++) wanted[d] = p->shape[d];
        char expected[120];
        shape_text(expected, sizeof expected, p->ndim, wanted);
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\" is missing (expected shape %s)",
                       w->set.n ? w->set.paths[0] : "weights", p->name, expected);
    }
    return TG_OK;
}

/* Waves that no file holds are made: as many as config.json says, whatever the size of the weights. Those of
 * models that exist are a sixty-fourth of this. */
static tg_status check_made(const tg_weights *w, const char *folder, const tg_params *params,
                            tg_error *err) {
    enum { MOST = 1 << 26 };
    for (size_t i = 0; i < params->n; i++) {
        const tg_param *p = &params->list[i];
        if (w->found[i] || p->init != TG_INIT_WAVES || p->count <= MOST) continue;
        return tg_fail(
            err, TG_DATA,
            "%s/config.json: max_position_embeddings: a table of %d positions and %d "
            "numbers each (%.1f GiB) would be made; expected at most %d positions: lower "
            "it to the longest text in tokens",
            folder, p->shape[0], p->shape[1], (double)p->count * sizeof(float) / (1 << 30),
            MOST / p->shape[1]);
    }
    return TG_OK;
}

/* Tensors of a file may share its bytes: a matrix under two names, which a model then has twice. But a small file does not make a large
 * model. */
static tg_status check_backed(const tg_weights *w, const tg_params *params, tg_error *err) {
    enum { TIMES = 2, SLACK = 1 << 22 };
    size_t wanted = 0, stored = 0;
    for (size_t i = 0; i < params->n; i++) wanted += w->found[i] ? w->found[i]->bytes : 0;
    for (size_t i = 0; i < w->set.n; i++) stored += w->set.files[i].map.len;
    if (wanted / TIMES <= stored + SLACK) return TG_OK;
    return tg_fail(err, TG_DATA, "%s: tensors of %zu bytes share the %zu bytes that are stored",
                   w->set.paths[0], wanted, stored);
}

/* only: the one file to read, or NULL. */
static tg_status open_set(tg_weights *w, const char *folder, const char *only, const tg_arch *arch,
                          tg_error *err) {
    if (only) return tg_tensor_set_add(&w->set, folder, only, err);
    tg_status st = tg_tensor_set_open(&w->set, folder, err);
    if (st == TG_OK && arch->value_head && tg_folder_has(folder, "value_head.safetensors"))
        st = tg_tensor_set_add(&w->set, folder, "value_head.safetensors", err);
    return st;
}

static tg_status open_and_match(tg_weights *w, const char *folder, const char *only,
                                const tg_arch *arch, const tg_params *params, tg_error *err) {
    *w = (tg_weights){0};
    const tg_family *family = tg_family_find(arch->family);
    w->found = tg_alloc_array(params->n, sizeof *w->found);
    w->found_in = tg_alloc_array(params->n, sizeof *w->found_in);
    tg_status st =
        w->found && w->found_in ? TG_OK : tg_fail_nomem(err, params->n * sizeof *w->found);
    if (st == TG_OK) st = open_set(w, folder, only, arch, err);
    for (size_t i = 0; i < w->set.n && st == TG_OK; i++)
        st = match_file(w, i, family, arch, params, err);
    if (st == TG_OK) st = check_complete(w, params, err);
    if (st == TG_OK) st = check_made(w, folder, params, err);
    if (st == TG_OK) st = check_backed(w, params, err);
    if (st != TG_OK) tg_weights_close(w);
    return st;
}

tg_status tg_weights_open(tg_weights *w, const char *folder, const tg_arch *arch,
                          const tg_params *params, tg_error *err) {
    return open_and_match(w, folder, NULL, arch, params, err);
}

tg_status tg_weights_open_file(tg_weights *w, const char *folder, const char *name,
                               const tg_arch *arch, const tg_params *params, tg_error *err) {
    return open_and_match(w, folder, name, arch, params, err);
}

/* A folder without weights is no mistake, and leaves no message. */
static tg_status open_if_there(tg_tensor_set *set, const char *folder, bool *there, tg_error *err) {
    tg_error why = {0};
    tg_status st = tg_tensor_set_open(set, folder, &why);
    *there = st == TG_OK;
    return st == TG_OK || st == TG_NOINPUT ? TG_OK : tg_fail(err, st, "%s", why.msg);
}

/* NULL: none. */
static const tg_st_tensor *find_tensor(const tg_tensor_set *set, const char *name) {
    const tg_st_tensor *t = NULL;
    for (size_t i = 0; i < set->n && !t; i++) t = tg_tensor_file_find(&set->files[i], name);
    return t;
}

static bool same_shape(const tg_st_tensor *a, const tg_st_tensor *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++) same = a->shape[i] == b->shape[i];
    return same;
}

tg_status tg_weights_tied(const char *folder, const tg_family *family, bool *tied, tg_error *err) {
    tg_tensor_set set;
    bool there;
    tg_status st = open_if_there(&set, folder, &there, err);
    if (st != TG_OK || !there) return st;
    const tg_st_tensor *head = NULL, *embed = NULL;
    for (const tg_family_tensor *t = family->tensors; t->name; t++) {
        if (t->role == TG_ROLE_HEAD_W) head = find_tensor(&set, t->name);
        if (t->role == TG_ROLE_TOKEN_EMBED && !embed) embed = find_tensor(&set, t->name);
    }
    for (size_t i = 0; !embed && family->embed_aliases && family->embed_aliases[i]; i++)
        embed = find_tensor(&set, family->embed_aliases[i]);
    *tied = !head || !embed || (same_shape(head, embed) && same_numbers(head, embed));
    tg_tensor_set_close(&set);
    return TG_OK;
}

tg_status tg_weights_pooler(const char *folder, const tg_family *family, bool *pooler,
                            tg_error *err) {
    tg_tensor_set set;
    bool there;
    tg_status st = open_if_there(&set, folder, &there, err);
    if (st != TG_OK || !there) return st;
    const size_t prefix = strlen(family->prefix);
    *pooler = false;
    for (const tg_family_tensor *t = family->tensors; t->name; t++) {
        if (t->role != TG_ROLE_POOL_W || strncmp(t->name, family->prefix, prefix) != 0) continue;
        *pooler = *pooler || find_tensor(&set, t->name) || find_tensor(&set, t->name + prefix);
    }
    tg_tensor_set_close(&set);
    return TG_OK;
}

void tg_weights_close(tg_weights *w) {
    tg_tensor_set_close(&w->set);
    tg_free(w->found);
    tg_free(w->found_in);
    *w = (tg_weights){0};
}

void tg_weights_release(const tg_weights *w, size_t i, size_t begin, size_t count) {
    const tg_st_tensor *t = w->found[i];
    const tg_filemap *map = &w->set.files[w->found_in[i]].map;
    size_t size = tg_dtype_bytes(t->dtype), last = 0;
    if (!t->strided) {
        tg_filemap_release(map, t->data + begin * size, count * size);
        return;
    }
    if (!t->count || begin + count < t->count) return;
    for (int d = 0; d < t->ndim; d++) last += (size_t)(t->shape[d] - 1) * (size_t)t->stride[d];
    tg_filemap_release(map, t->data, (last + 1) * size);
}

static tg_status check_seal(const tg_weights *w, size_t i, tg_error *err) {
    const size_t file = w->found_in[i];
    return tg_tensor_file_check_seal(&w->set.files[file], w->found[i], w->set.paths[file], err);
}

tg_status tg_weights_intact(const tg_weights *w, const tg_params *params, tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; i < params->n && st == TG_OK; i++)
        if (w->found[i]) st = check_seal(w, i, err);
    return st;
}

tg_status tg_weights_read(void *arg, size_t i, size_t begin, size_t count, tg_dtype as, void *out,
                          tg_error *err) {
    const tg_weights *w = arg;
    tg_status st = begin ? TG_OK : check_seal(w, i, err);
    if (st == TG_OK) st = tg_st_read(w->found[i], begin, count, as, out, err);
    tg_weights_release(w, i, begin, count);
    return st;
}

/* Piece by piece, giving back what was copied: the file's pages and the model are never both whole in memory. */
tg_status tg_weights_upload(const tg_weights *w, size_t i, const tg_param *p, tg_backend *be,
                            float *device, tg_error *err) {
    const tg_st_tensor *t = w->found[i];
    const char *path = w->set.paths[w->found_in[i]];
    size_t size = tg_dtype_bytes(t->dtype);
    float *piece = NULL;
    bool straight = t->dtype == TG_F32 && !t->strided;
    if (!straight && !(piece = tg_alloc_array(PIECE, sizeof *piece)))
        return tg_fail_nomem(err, PIECE * sizeof *piece);
    tg_status st = check_seal(w, i, err);
    for (size_t at = 0; at < t->count && st == TG_OK; at += PIECE) {
        size_t n = TG_MIN(t->count - at, (size_t)PIECE);
        const unsigned char *from = straight ? t->data + at * size : NULL;
        if (piece) st = tg_st_to_f32_part(t, at, n, piece, err);
        const void *floats = piece ? (const void *)piece : from;
        if (st == TG_OK) st = tg_finite_check(path, t, p, at, floats, n, err);
        if (st == TG_OK) tg_backend_upload(be, device + at, floats, n * sizeof(float));
        tg_weights_release(w, i, at, n);
    }
    tg_free(piece);
    return st;
}
