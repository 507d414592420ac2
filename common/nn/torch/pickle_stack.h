/* What the pickle machine works on: its stack, its memo, and the tuples, lists and dicts on them, within the budget of memory. Private to
 * pickle.c. */
#ifndef TG_NN_TORCH_PICKLE_STACK_H
#define TG_NN_TORCH_PICKLE_STACK_H

#include "common/nn/torch/pickle.h"

/* TG_DATA: what is wrong with the opcode at p->op_at. */
static inline tg_status tg_pickle_bad(tg_pickle *p, const char *what) {
    return tg_fail(p->err, TG_DATA, "pickle byte %zu: %s", p->op_at, what);
}

tg_status tg_pickle_push(tg_pickle *p, tg_pickle_value v) TG_MUST_CHECK;
/* The n topmost values, none of which may be a mark; they leave the stack, and *out is theirs until the next push. */
tg_status tg_pickle_pop(tg_pickle *p, size_t n, tg_pickle_value **out) TG_MUST_CHECK;
/* What lies above the topmost mark, in the same way; the mark leaves the stack too. */
tg_status tg_pickle_pop_to_mark(tg_pickle *p, tg_pickle_value **out, size_t *n) TG_MUST_CHECK;

/* A tuple of copies of the items, which may be what was popped. */
tg_status tg_pickle_push_tuple(tg_pickle *p, const tg_pickle_value *items, size_t n) TG_MUST_CHECK;
/* A fresh list or dict. */
tg_status tg_pickle_push_list(tg_pickle *p, tg_pickle_kind kind) TG_MUST_CHECK;
/* Adds items to the list or dict on top of the stack. */
tg_status tg_pickle_extend(tg_pickle *p, tg_pickle_kind kind, const tg_pickle_value *items,
                           size_t n) TG_MUST_CHECK;

/* The value on top is remembered; or pushed again. */
tg_status tg_pickle_put(tg_pickle *p, uint64_t index) TG_MUST_CHECK;
tg_status tg_pickle_recall(tg_pickle *p, uint64_t index) TG_MUST_CHECK;

#endif
