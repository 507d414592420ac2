/* Random numbers are drawn on the host, by all threads, and go to the device a round at a time. */
#include "common/nn/model_init.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/nn/positions.h"

#include <math.h>
#include <string.h>

enum { INIT_PIECE = 1 << 16 }; /* floats per random stream */

/* One tensor being drawn: PIECES pieces at a time, by all threads. */
struct drawing {
    const tg_param *param;
    double sigma, bound;
    uint64_t seed, stream;
    size_t begin; /* first piece of this round */
    float *out;   /* (PIECES * INIT_PIECE) */
};

static void draw_piece(void *arg, int tile) {
    const struct drawing *d = arg;
    size_t piece = d->begin + (size_t)tile, at = piece * INIT_PIECE;
    size_t n = TG_MIN(d->param->count - at, (size_t)INIT_PIECE);
    float *out = d->out + (size_t)tile * INIT_PIECE;
    tg_rng r = tg_rng_at(d->seed, TG_RNG_INIT, d->stream, piece);
    for (size_t i = 0; i < n; i++) {
        double x = d->param->init == TG_INIT_LINEAR ? (2.0 * tg_rng_uniform(&r) - 1.0) * d->bound
                                                    : d->sigma * tg_rng_normal(&r);
        out[i] = (float)x;
    }
}

static tg_status init_waves(tg_model *m, const tg_param *p, tg_error *err) {
    float *table = tg_alloc_array(p->count, sizeof *table);
    if (!table) return tg_fail_nomem(err, p->count * sizeof *table);
    tg_waves_table(p->shape[0], p->shape[1], table);
    tg_backend_upload(m->be, m->data + p->offset, table, p->count * sizeof *table);
    tg_free(table);
    return TG_OK;
}

tg_status tg_model_init_param(tg_model *m, const tg_param *p, uint64_t seed, tg_error *err) {
    float *device = m->data + p->offset;
    if (p->init == TG_INIT_ZERO || p->init == TG_INIT_ONE) {
        m->be->ops->fill(m->be, device, p->init == TG_INIT_ONE ? 1.0f : 0.0f, p->count);
        return TG_OK;
    }
    if (p->init == TG_INIT_WAVES) return init_waves(m, p, err);
    enum { PIECES = 32 };
    size_t pieces = (p->count + INIT_PIECE - 1) / INIT_PIECE;
    size_t floats = TG_MIN(pieces, (size_t)PIECES) * INIT_PIECE;
    struct drawing d = {
        .param = p,
        .sigma = p->init == TG_INIT_RESIDUAL ? 0.02 / sqrt(2.0 * m->arch.n_layers) : 0.02,
        .bound = 1.0 / sqrt((double)p->shape[p->ndim - 1]),
        .seed = seed,
        .stream = tg_hash64(p->name, strlen(p->name)) & ((1ull << 40) - 1),
        .out = tg_alloc_array(floats, sizeof(float)),
    };
    if (!d.out) return tg_fail_nomem(err, floats * sizeof(float));
    for (; d.begin < pieces; d.begin += PIECES) {
        size_t n = TG_MIN(pieces - d.begin, (size_t)PIECES), at = d.begin * INIT_PIECE;
        tg_team_run(m->be->team, (int)n, draw_piece, &d);
        tg_backend_upload(m->be, device + at, d.out,
                          TG_MIN(p->count - at, n * INIT_PIECE) * sizeof(float));
    }
    tg_free(d.out);
    return TG_OK;
}
