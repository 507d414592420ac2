/* See text_order.h. */
#include "learner/train/text_order.h"

#include "common/base/check.h"
#include "common/base/rng.h"

tg_text_range tg_text_order_step(const tg_text_order *o, int64_t step) {
    int64_t k = step % o->steps_per_epoch, first = k * o->texts_per_step;
    bool last = k == o->steps_per_epoch - 1;
    return (tg_text_range){step / o->steps_per_epoch, first,
                           last && o->takes_rest ? o->n : TG_MIN(first + o->texts_per_step, o->n)};
}

int64_t tg_text_order_at(const tg_text_order *o, const tg_text_range *r, int64_t i) {
    return (int64_t)tg_permute(o->seed, TG_RNG_DATA, (uint64_t)r->epoch, (uint64_t)i,
                               (uint64_t)o->n);
}

tg_pass_caps tg_text_order_caps(const tg_text_order *o, const tg_corpus *c, tg_pass_caps caps,
                                int64_t first, int64_t end) {
    enum { LOOKED_AT = 1 << 20 }; /* texts: a tenth of a second */
    tg_pass_caps most = caps;
    most.tokens = most.seqs = most.src = 0;
    int64_t seen = 0;
    for (int64_t step = first; step < end && seen < LOOKED_AT; step++) {
        tg_text_range r = tg_text_order_step(o, step);
        int tokens = 0, src = 0, seqs = 0;
        for (int64_t i = r.first; i < r.end; i++, seen++) {
            int64_t text = tg_text_order_at(o, &r, i);
            int rows = (int)(c->start[text + 1] - c->start[text]) - 1;
            int source = c->src ? (int)(c->src_start[text + 1] - c->src_start[text]) : 0;
            if (tokens + rows > caps.tokens || src + source > caps.src) tokens = src = seqs = 0;
            tokens += rows, src += source, seqs++;
            most.tokens = TG_MAX(most.tokens, tokens);
            most.src = TG_MAX(most.src, src);
            most.seqs = TG_MAX(most.seqs, seqs);
        }
    }
    most.actions = most.tokens;
    most.most_actions = caps.actions;
    return most;
}
