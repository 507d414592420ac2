/* What persistent ids and calls make. Arguments are checked here for their kinds; whether a tensor lies inside its storage and
 * the storage inside the file is torch_file.c's to say. */
#include "common/nn/torch/state.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

typedef enum global {
    ORDERED_DICT,
    REBUILD_V1,
    REBUILD_V2,
    REBUILD_PARAMETER,
    REBUILD_FROM_TYPE,
    TENSOR_TYPE,
    STORAGE_TYPE, /* this number and above: the dtype */
} global;

static const struct {
    const char *module, *name;
    int id;
} globals[] = {
    {"collections", "OrderedDict", ORDERED_DICT},
    {"torch._utils", "_rebuild_tensor", REBUILD_V1},
    {"torch._utils", "_rebuild_tensor_v2", REBUILD_V2},
    {"torch._utils", "_rebuild_parameter", REBUILD_PARAMETER},
    {"torch._utils", "_rebuild_parameter_with_state", REBUILD_PARAMETER},
    {"torch._tensor", "_rebuild_from_type_v2", REBUILD_FROM_TYPE},
    {"torch", "Tensor", TENSOR_TYPE},
    {"torch.nn.parameter", "Parameter", TENSOR_TYPE},
    {"torch", "FloatStorage", STORAGE_TYPE + TG_F32},
    {"torch", "HalfStorage", STORAGE_TYPE + TG_F16},
    {"torch", "BFloat16Storage", STORAGE_TYPE + TG_BF16},
    {"torch", "DoubleStorage", STORAGE_TYPE + TG_F64},
    {"torch", "IntStorage", STORAGE_TYPE + TG_I32},
    {"torch", "LongStorage", STORAGE_TYPE + TG_I64},
    {"torch", "ShortStorage", STORAGE_TYPE + TG_I16},
    {"torch", "ByteStorage", STORAGE_TYPE + TG_U8},
    {"torch", "CharStorage", STORAGE_TYPE + TG_I8},
    {"torch", "BoolStorage", STORAGE_TYPE + TG_BOOL8},
};

static bool is_text(const char *text, size_t len, const char *wanted) {
    return len == strlen(wanted) && !memcmp(text, wanted, len);
}

static int find_global(void *arg, const char *module, size_t module_len, const char *name,
                       size_t name_len) {
    (void)arg;
    if (is_text(module, module_len, "torch.cuda")) module_len = strlen("torch"); /* torch < 1.6 */
    for (size_t i = 0; i < TG_COUNT_OF(globals); i++)
        if (is_text(module, module_len, globals[i].module) &&
            is_text(name, name_len, globals[i].name))
            return globals[i].id;
    return -1;
}

/* Room for one more; the number of objects is at most the number of pickle bytes. */
static void *next_of(void **list, size_t n, size_t *cap, size_t size) {
    if (n == *cap) {
        size_t more = *cap + *cap / 2 + 16;
        void *at = tg_realloc_array(*list, more, size);
        if (!at) return NULL;
        *list = at;
        *cap = more;
    }
    return (char *)*list + n * size;
}

static tg_status add_storage(tg_torch_state *s, const tg_torch_storage *wanted,
                             tg_pickle_value *out, tg_error *err) {
    void *list = s->storages;
    tg_torch_storage *at = next_of(&list, s->n_storages, &s->storages_cap, sizeof *at);
    s->storages = list;
    if (!at) return tg_fail_nomem(err, s->storages_cap * sizeof *at);
    *at = *wanted;
    *out = (tg_pickle_value){
        .kind = TG_PICKLE_OBJECT, .n = TG_TORCH_STORAGE, .i = (int64_t)s->n_storages++};
    return TG_OK;
}

/* None, or (key, offset, size) of a view. */
static bool read_view(const tg_pickle_value *v, tg_torch_storage *s) {
    if (v->kind == TG_PICKLE_NONE) return true;
    if (v->kind != TG_PICKLE_TUPLE || v->n != 3 || v->items[1].kind != TG_PICKLE_INT ||
        v->items[2].kind != TG_PICKLE_INT)
        return false;
    s->begin = v->items[1].i;
    return s->begin >= 0 && s->begin <= s->count && v->items[2].i >= 0 &&
           v->items[2].i <= s->count - s->begin;
}

/* ("storage", type, key, place, count) and in the old format a view. */
static tg_status load_storage(void *arg, tg_pickle *p, const tg_pickle_value *id,
                              tg_pickle_value *out, tg_error *err) {
    const tg_pickle_value *v = id->items;
    bool ok = id->kind == TG_PICKLE_TUPLE && (id->n == 5 || id->n == 6);
    ok = ok && v[0].kind == TG_PICKLE_TEXT && is_text((const char *)v[0].text, v[0].n, "storage") &&
         v[1].kind == TG_PICKLE_GLOBAL && v[1].n >= STORAGE_TYPE && v[2].kind == TG_PICKLE_TEXT &&
         v[4].kind == TG_PICKLE_INT && v[4].i >= 0;
    if (!ok) return tg_fail(err, TG_DATA, "pickle: a persistent id that is no storage");
    if (v[2].n > TG_TORCH_KEY_MAX)
        return tg_fail(err, TG_DATA, "pickle: storage \"%.60s…\" has too long a name",
                       (const char *)v[2].text);
    tg_torch_storage s = {.key = (const char *)v[2].text,
                          .key_len = v[2].n,
                          .dtype = (tg_dtype)(v[1].n - STORAGE_TYPE),
                          .count = v[4].i};
    if (id->n == 6 && !read_view(&v[5], &s))
        return tg_fail(err, TG_DATA, "pickle: storage \"%.*s\": a broken view",
                       (int)TG_MIN(s.key_len, (size_t)60), s.key);
    tg_status st = tg_pickle_spend(p, sizeof s, err);
    return st == TG_OK ? add_storage(arg, &s, out, err) : st;
}

static bool read_numbers(const tg_pickle_value *v, int64_t *out, int *n) {
    if (v->kind != TG_PICKLE_TUPLE || v->n > TG_ST_MAX_DIMS) return false;
    *n = (int)v->n;
    for (int i = 0; i < *n; i++) {
        if (v->items[i].kind != TG_PICKLE_INT || v->items[i].i < 0) return false;
        out[i] = v->items[i].i;
    }
    return true;
}

static bool is_object(const tg_pickle_value *v, uint32_t type) {
    return v->kind == TG_PICKLE_OBJECT && v->n == type;
}

/* {"neg": True} or {"conj": True}: torch marks such a view and leaves the numbers of the storage as they are. There are no other marks: one
 * table of many, shared by all tensors, would be read again for each. */
static bool is_marked(const tg_pickle_value *v) {
    enum { MARKS = 2 };
    if (v->kind == TG_PICKLE_NONE) return false;
    if (v->kind != TG_PICKLE_DICT || v->list->n > 2 * MARKS) return true;
    for (size_t i = 1; i < v->list->n; i += 2)
        if (v->list->items[i].kind != TG_PICKLE_BOOL || v->list->items[i].i) return true;
    return false;
}

/* (storage, offset, shape, strides, requires_grad, hooks, marks): the two before the marks have no effect on the numbers. */
static tg_status rebuild(tg_torch_state *s, const tg_pickle_value *args, tg_pickle_value *out,
                         tg_error *err) {
    const tg_pickle_value *v = args->items;
    tg_torch_tensor t = {0};
    int strides = 0;
    bool ok = args->n >= 4 && args->n <= 7 && is_object(&v[0], TG_TORCH_STORAGE) &&
              v[1].kind == TG_PICKLE_INT && v[1].i >= 0 && read_numbers(&v[2], t.shape, &t.ndim) &&
              read_numbers(&v[3], t.stride, &strides) && strides == t.ndim;
    if (!ok)
        return tg_fail(err, TG_DATA,
                       "pickle: a tensor whose storage, offset, shape (at most %d dimensions) or "
                       "strides are not as they should be",
                       TG_ST_MAX_DIMS);
    if (args->n == 7 && is_marked(&v[6]))
        return tg_fail(err, TG_DATA,
                       "pickle: a tensor marked as the negative or conjugate of its storage (save "
                       "it after resolve_neg() and resolve_conj())");
    t.storage = (size_t)v[0].i;
    t.offset = v[1].i;
    void *list = s->tensors;
    tg_torch_tensor *at = next_of(&list, s->n_tensors, &s->tensors_cap, sizeof *at);
    s->tensors = list;
    if (!at) return tg_fail_nomem(err, s->tensors_cap * sizeof *at);
    *at = t;
    *out = (tg_pickle_value){
        .kind = TG_PICKLE_OBJECT, .n = TG_TORCH_TENSOR, .i = (int64_t)s->n_tensors++};
    return TG_OK;
}

/* (function, type, its arguments, attributes): of a tensor to which somebody gave attributes, which do not change its numbers. */
static tg_status rebuild_from_type(tg_torch_state *s, const tg_pickle_value *args,
                                   tg_pickle_value *out, tg_error *err) {
    const tg_pickle_value *v = args->items;
    bool ok = args->n == 4 && v[0].kind == TG_PICKLE_GLOBAL && v[1].kind == TG_PICKLE_GLOBAL &&
              v[1].n == TENSOR_TYPE && v[2].kind == TG_PICKLE_TUPLE &&
              (v[0].n == REBUILD_V1 || v[0].n == REBUILD_V2);
    return ok ? rebuild(s, &v[2], out, err)
              : tg_fail(err, TG_DATA, "pickle: a tensor of another type than torch.Tensor");
}

/* Without arguments; Python 2 saved the items as one: a list of [key, value]. */
static tg_status ordered_dict(tg_pickle *p, const tg_pickle_value *args, tg_pickle_value *out,
                              tg_error *err) {
    const tg_pickle_value *list = args->n ? &args->items[0] : NULL;
    if (args->n > 1 || (list && list->kind != TG_PICKLE_LIST))
        return tg_fail(err, TG_DATA, "pickle: OrderedDict with other arguments than its items");
    tg_status st = tg_pickle_new_dict(p, out, err);
    for (size_t i = 0; list && i < list->list->n && st == TG_OK; i++) {
        const tg_pickle_value *pair = &list->list->items[i];
        if (pair->kind == TG_PICKLE_LIST && pair->list->n == 2)
            st = tg_pickle_dict_add(p, out, pair->list->items, err);
        else
            st = tg_fail(err, TG_DATA,
                         "pickle: an item of an OrderedDict that is not a list of key and value");
    }
    return st;
}

static tg_status call(void *arg, tg_pickle *p, uint32_t id, const tg_pickle_value *args,
                      tg_pickle_value *out, tg_error *err) {
    tg_torch_state *s = arg;
    switch (id) {
    case ORDERED_DICT: return ordered_dict(p, args, out, err);
    case REBUILD_V1:
    case REBUILD_V2:
    case REBUILD_FROM_TYPE: {
        tg_status st = tg_pickle_spend(p, sizeof(tg_torch_tensor), err);
        if (st != TG_OK) return st;
        return (id == REBUILD_FROM_TYPE ? rebuild_from_type : rebuild)(s, args, out, err);
    }
    case REBUILD_PARAMETER:
        if (!args->n || !is_object(&args->items[0], TG_TORCH_TENSOR))
            return tg_fail(err, TG_DATA, "pickle: a parameter of what is no tensor");
        *out = args->items[0];
        return TG_OK;
    default: return tg_fail(err, TG_DATA, "pickle: a call of a type");
    }
}

tg_pickle_host tg_torch_state_host(tg_torch_state *state) {
    return (tg_pickle_host){state, find_global, load_storage, call};
}

void tg_torch_state_fini(tg_torch_state *s) {
    tg_free(s->storages);
    tg_free(s->tensors);
    *s = (tg_torch_state){0};
}
