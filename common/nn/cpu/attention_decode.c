/* Attention of one new token for each slot: entries and groups of heads are spread over the team. How many heads are in a group
 * depends on what there is to share out; the result does not. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

typedef struct decode_job {
    const tg_cpu_kernels *kernels;
    float *out;
    const float *q;
    const char *k, *v;
    const int32_t *slots, *lengths;
    size_t q_stride, slot_rows;
    int groups; /* of heads */
    tg_attn_dims d;
} decode_job;

static void decode_group(void *arg, int tile) {
    const decode_job *j = arg;
    const tg_attn_dims *d = &j->d;
    const int b = tile / j->groups, group = tile % j->groups;
    const int h0 = d->H * group / j->groups, h1 = d->H * (group + 1) / j->groups;
    const int all = j->lengths[b], n = d->window > 0 && all > d->window ? d->window : all;
    const size_t ld = (size_t)d->G * (size_t)d->D, D = (size_t)d->D;
    const size_t first = ((size_t)j->slots[b] * j->slot_rows + (size_t)(all - n)) * ld *
                         (d->half_cache ? sizeof(uint16_t) : sizeof(float));
    const size_t q_step = d->q_step ? (size_t)d->q_step : D;
    tg_score_shape shape[TG_DECODE_HEADS];
    for (int h = h0; h < h1; h++)
        shape[h - h0] = (tg_score_shape){
            d->scale,     d->softcap, d->slopes ? d->slopes[h] : 0, d->bias ? d->bias + h : NULL,
            (size_t)d->H, d->reach};
    j->kernels->decode(
        &(tg_decode_task){.out = j->out + ((size_t)b * (size_t)d->H + (size_t)h0) * D,
                          .q = j->q + (size_t)b * j->q_stride + (size_t)h0 * q_step,
                          .q_step = q_step,
                          .k = j->k + first,
                          .v = j->v + first,
                          .half = d->half_cache,
                          .ld = ld,
                          .n = n,
                          .D = d->D,
                          .first = h0,
                          .heads = h1 - h0,
                          .share = d->H / d->G,
                          .shape = shape});
}

void tg_cpu_attention_decode(tg_backend *be, float *out, const float *q, int q_stride,
                             const void *k_cache, const void *v_cache, int max_len,
                             const int32_t *slots, const int32_t *lengths, int B,
                             tg_attn_dims dims) {
    if (B <= 0) return;
    const int tiles = 2 * tg_team_size(be->team);
    decode_job j = {be->kernels,
                    out,
                    q,
                    k_cache,
                    v_cache,
                    slots,
                    lengths,
                    (size_t)q_stride,
                    (size_t)max_len,
                    TG_MAX((dims.H + TG_DECODE_HEADS - 1) / TG_DECODE_HEADS,
                           TG_MIN((tiles + B - 1) / B, dims.H)),
                    dims};
    tg_team_run(be->team, B * j.groups, decode_group, &j);
}
