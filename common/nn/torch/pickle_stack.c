/* Memory comes only through spend(), which holds the budget. */
#include "common/nn/torch/pickle_stack.h"

#include "common/base/alloc.h"

#include <string.h>

static tg_status spend(tg_pickle *p, size_t bytes) {
    if (bytes > p->budget - p->used)
        return tg_pickle_bad(p, "it needs more memory than a pickle of its length should");
    p->used += bytes;
    return TG_OK;
}

tg_status tg_pickle_spend(tg_pickle *p, size_t bytes, tg_error *err) {
    p->err = err;
    return spend(p, bytes);
}

/* Room for wanted values at *at. */
static tg_status grow(tg_pickle *p, tg_pickle_value **at, size_t *cap, size_t wanted) {
    if (wanted <= *cap) return TG_OK;
    size_t more = *cap + *cap / 2;
    if (more < wanted) more = wanted;
    if (more < 8) more = 8;
    tg_status st = spend(p, (more - *cap) * sizeof **at);
    if (st != TG_OK) return st;
    tg_pickle_value *v = tg_realloc_array(*at, more, sizeof *v);
    if (!v) return tg_fail_nomem(p->err, more * sizeof *v);
    memset(v + *cap, 0, (more - *cap) * sizeof *v);
    *at = v;
    *cap = more;
    return TG_OK;
}

tg_status tg_pickle_push(tg_pickle *p, tg_pickle_value v) {
    tg_status st = grow(p, &p->stack, &p->stack_cap, p->depth + 1);
    if (st == TG_OK) p->stack[p->depth++] = v;
    return st;
}

tg_status tg_pickle_pop(tg_pickle *p, size_t n, tg_pickle_value **out) {
    if (n > p->depth) return tg_pickle_bad(p, "the stack is empty");
    *out = p->stack + p->depth - n;
    for (size_t i = 0; i < n; i++)
        if ((*out)[i].kind == TG_PICKLE_MARK)
            return tg_pickle_bad(p, "a mark where a value should be");
    p->depth -= n;
    return TG_OK;
}

tg_status tg_pickle_pop_to_mark(tg_pickle *p, tg_pickle_value **out, size_t *n) {
    for (size_t i = p->depth; i-- > 0;) {
        if (p->stack[i].kind != TG_PICKLE_MARK) continue;
        *out = p->stack + i + 1;
        *n = p->depth - i - 1;
        p->depth = i;
        return TG_OK;
    }
    return tg_pickle_bad(p, "no mark on the stack");
}

tg_status tg_pickle_push_tuple(tg_pickle *p, const tg_pickle_value *items, size_t n) {
    tg_pickle_value v = {.kind = TG_PICKLE_TUPLE, .n = (uint32_t)n};
    if (n) {
        tg_status st = spend(p, n * sizeof *items);
        if (st != TG_OK) return st;
        tg_pickle_value *copy = tg_arena_array(&p->arena, n, sizeof *copy);
        if (!copy) return tg_fail_nomem(p->err, n * sizeof *copy);
        memcpy(copy, items, n * sizeof *copy);
        v.items = copy;
    }
    return tg_pickle_push(p, v);
}

static tg_status new_list(tg_pickle *p, tg_pickle_kind kind, tg_pickle_value *out) {
    tg_status st = spend(p, sizeof(tg_pickle_list));
    if (st != TG_OK) return st;
    tg_pickle_list *list = tg_alloc(sizeof *list);
    if (!list) return tg_fail_nomem(p->err, sizeof *list);
    list->next = p->lists;
    p->lists = list;
    *out = (tg_pickle_value){.kind = kind, .list = list};
    return TG_OK;
}

tg_status tg_pickle_new_dict(tg_pickle *p, tg_pickle_value *out, tg_error *err) {
    p->err = err;
    return new_list(p, TG_PICKLE_DICT, out);
}

tg_status tg_pickle_push_list(tg_pickle *p, tg_pickle_kind kind) {
    tg_pickle_value v;
    tg_status st = new_list(p, kind, &v);
    return st == TG_OK ? tg_pickle_push(p, v) : st;
}

static tg_status add_items(tg_pickle *p, tg_pickle_list *list, const tg_pickle_value *items,
                           size_t n) {
    tg_status st = grow(p, &list->items, &list->cap, list->n + n);
    if (st != TG_OK) return st;
    if (n) memcpy(list->items + list->n, items, n * sizeof *items);
    list->n += n;
    return TG_OK;
}

tg_status tg_pickle_dict_add(tg_pickle *p, const tg_pickle_value *dict,
                             const tg_pickle_value pair[2], tg_error *err) {
    p->err = err;
    return add_items(p, dict->list, pair, 2);
}

tg_status tg_pickle_extend(tg_pickle *p, tg_pickle_kind kind, const tg_pickle_value *items,
                           size_t n) {
    if (!p->depth || p->stack[p->depth - 1].kind != kind)
        return tg_pickle_bad(p, kind == TG_PICKLE_DICT ? "no dict to set items of"
                                                       : "no list to append to");
    if (kind == TG_PICKLE_DICT && n % 2) return tg_pickle_bad(p, "a key without a value");
    return add_items(p, p->stack[p->depth - 1].list, items, n);
}

/* An index beyond what the bytes so far could have put is a lie, and would cost memory. */
tg_status tg_pickle_put(tg_pickle *p, uint64_t index) {
    if (!p->depth || p->stack[p->depth - 1].kind == TG_PICKLE_MARK)
        return tg_pickle_bad(p, "nothing to remember");
    if (index >= p->at)
        return tg_pickle_bad(p, "a memo index beyond the number of values there are");
    tg_status st = grow(p, &p->memo, &p->memo_cap, (size_t)index + 1);
    if (st != TG_OK) return st;
    p->memo[index] = p->stack[p->depth - 1];
    if (p->memo_next <= index) p->memo_next = (size_t)index + 1;
    return TG_OK;
}

tg_status tg_pickle_recall(tg_pickle *p, uint64_t index) {
    if (index >= p->memo_cap || p->memo[index].kind == TG_PICKLE_UNSET)
        return tg_pickle_bad(p, "a memo entry that was never put");
    return tg_pickle_push(p, p->memo[index]);
}

void tg_pickle_fini(tg_pickle *p) {
    while (p->lists) {
        tg_pickle_list *next = p->lists->next;
        tg_free(p->lists->items);
        tg_free(p->lists);
        p->lists = next;
    }
    tg_free(p->stack);
    tg_free(p->memo);
    tg_arena_fini(&p->arena);
    *p = (tg_pickle){0};
}
