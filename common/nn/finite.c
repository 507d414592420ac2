/* The common case is a loop over bits that the compiler makes wide; only a piece with a hit is looked at closely. */
#include "common/nn/finite.h"

#include "common/base/check.h"
#include "common/base/threads.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { ROW = 1024, PIECE = 1 << 16 };

/* Whether one of ROW floats is infinite or NaN. */
static bool has_hit(const unsigned char *floats) {
    uint32_t hits = 0;
    for (size_t i = 0; i < ROW; i++) {
        int32_t bits;
        memcpy(&bits, floats + i * sizeof bits, sizeof bits);
        hits |= (bits & 0x7fffffff) > 0x7f7fffff;
    }
    return hits;
}

/* How many of the floats, from the first, may be weights. */
static size_t good_prefix(const unsigned char *floats, size_t n, bool may_forbid) {
    for (size_t at = 0; at < n;) {
        if (n - at >= ROW && !has_hit(floats + at * sizeof(float))) {
            at += ROW;
            continue;
        }
        for (const size_t end = TG_MIN(n, at + ROW); at < end; at++) {
            float x;
            memcpy(&x, floats + at * sizeof x, sizeof x);
            if (!isfinite(x) && !(may_forbid && isinf(x) && x < 0)) return at;
        }
    }
    return n;
}

tg_status tg_finite_check(const char *path, const tg_st_tensor *t, const tg_param *p, size_t begin,
                          const void *floats, size_t n, tg_error *err) {
    const size_t good = good_prefix(floats, n, p->role == TG_ROLE_HEAD_B);
    if (good == n) return TG_OK;
    float x;
    memcpy(&x, (const unsigned char *)floats + good * sizeof x, sizeof x);
    return tg_fail(err, TG_DATA,
                   "%s: tensor \"%.200s\": element %zu is %s; expected finite numbers: the file is "
                   "damaged or its training failed, take another copy or an earlier checkpoint",
                   path, t->name, begin + good,
                   isnan(x) ? "NaN"
                   : x < 0  ? "-infinity"
                            : "infinity");
}

/* One tensor, looked at piece by piece; the first piece with a hit is the one that is reported. */
struct look {
    const tg_st_tensor *t;
    const tg_param *p;
    _Atomic size_t hit; /* its first element */
};

static tg_status check_piece(const struct look *l, const char *path, size_t at, tg_error *err) {
    float row[ROW];
    const size_t end = TG_MIN(at + PIECE, l->t->count);
    tg_status st = TG_OK;
    for (; at < end && st == TG_OK; at += ROW) {
        const size_t n = TG_MIN(end - at, (size_t)ROW);
        st = tg_st_to_f32_part(l->t, at, n, row, err);
        if (st == TG_OK) st = tg_finite_check(path, l->t, l->p, at, row, n, err);
    }
    return st;
}

static void look_at(void *arg, int tile) {
    struct look *l = arg;
    const size_t at = (size_t)tile * PIECE;
    if (check_piece(l, "", at, NULL) == TG_OK) return;
    size_t known = atomic_load(&l->hit);
    while (at < known && !atomic_compare_exchange_weak(&l->hit, &known, at)) continue;
}

tg_status tg_weights_finite(const tg_weights *w, const tg_params *params, tg_error *err) {
    tg_team *team;
    tg_status st = tg_team_create(&team, 0, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < params->n && st == TG_OK; i++) {
        struct look l = {.t = w->found[i], .p = &params->list[i]};
        if (!l.t) continue;
        const size_t file = w->found_in[i];
        atomic_store(&l.hit, l.t->count);
        tg_team_run(team, (int)((l.t->count + PIECE - 1) / PIECE), look_at, &l);
        if (l.hit < l.t->count) st = check_piece(&l, w->set.paths[file], l.hit, err);
        tg_weights_release(w, i, 0, l.t->count);
    }
    tg_team_destroy(&team);
    return st;
}
