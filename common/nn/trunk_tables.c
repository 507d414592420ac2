/* Tables that a stack reads by position or distance. Angles lie in one table: first a row for each position, then, where the angles of a long
 * text depend on its length, room for the rows of such texts, which are made when they are read. */
#include "common/nn/trunk.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/positions.h"

/* Beyond the farthest distance all have one bias, and none is farther than there are positions. */
static int reach_of(const tg_arch *arch, int positions) {
    return TG_MIN(arch->rel_distance, positions);
}

void tg_carve_tables(tg_carve *c, const tg_arch *arch, int positions, int rows, bool train,
                     tg_trunk *t) {
    const bool own = tg_arch_varies(arch) && rows > arch->max_positions;
    t->positions = positions;
    t->own_rows = own ? rows : 0;
    const size_t P = (size_t)positions + (size_t)t->own_rows, H = (size_t)arch->n_heads;
    t->rope = t->local_rope = t->slopes = t->bias = t->dbias = t->plain = NULL;
    t->buckets = NULL;
    if (arch->plain_norms) t->plain = tg_carve_f32(c, 2, (size_t)arch->width);
    if (arch->rope.dims) t->rope = tg_carve_f32(c, P, (size_t)arch->rope.dims);
    if (arch->local_rope.dims) t->local_rope = tg_carve_f32(c, P, (size_t)arch->local_rope.dims);
    if (arch->alibi) t->slopes = tg_carve_f32(c, H, 1);
    if (!arch->rel_buckets) return;
    t->reach = reach_of(arch, positions);
    size_t n = 2 * (size_t)t->reach + 1;
    t->buckets = tg_carve_i32(c, n);
    t->bias = tg_carve_f32(c, n, H);
    if (train) t->dbias = tg_carve_f32(c, n, H);
}

static void put_norm(tg_tensors *p, tg_param_role role, float *plain, size_t width) {
    p->w[role] = plain;
    p->w[role + 1] = plain + width;
}

static void put_plain_norms(tg_trunk *t) {
    const size_t C = (size_t)t->arch.width;
    t->be->ops->fill(t->be, t->plain, 1.0f, C);
    t->be->ops->fill(t->be, t->plain + C, 0.0f, C);
    for (int l = 0; l < t->arch.n_layers; l++) {
        put_norm(&t->layers[l], TG_ROLE_NORM1_W, t->plain, C);
        put_norm(&t->layers[l], TG_ROLE_NORM2_W, t->plain, C);
    }
    if (t->arch.final_norm) put_norm(&t->top, TG_ROLE_FINAL_W, t->plain, C);
}

/* Of a text of `length` tokens, n rows of the tables of angles from `row` on; a length of 0: of every position. */
static void put_angles(const tg_trunk *t, int length, int row, int n, float *host) {
    const tg_rope *const ropes[] = {&t->arch.rope, &t->arch.local_rope};
    float *const tables[] = {t->rope, t->local_rope};
    for (int i = 0; i < 2; i++) {
        if (!tables[i]) continue;
        const size_t dims = (size_t)ropes[i]->dims;
        if (length)
            tg_rope_rows(ropes[i], length, 0, n, host);
        else
            tg_rope_table(ropes[i], n, host);
        tg_backend_upload(t->be, tables[i] + (size_t)row * dims, host,
                          (size_t)n * dims * sizeof *host);
    }
}

int tg_trunk_place_text(const tg_trunk *t, int n, int *used) {
    if (!t->own_rows || n <= t->arch.max_positions) return t->arch.pos_offset;
    const int row = t->positions + *used;
    TG_ASSERT(*used + n <= t->own_rows);
    put_angles(t, n, row, n, t->own_host);
    *used += n;
    return row;
}

tg_status tg_trunk_fill_tables(tg_trunk *t, tg_error *err) {
    const tg_arch *arch = &t->arch;
    const size_t H = (size_t)arch->n_heads, reach = 2 * (size_t)t->reach + 1;
    const size_t dims = (size_t)TG_MAX(arch->rope.dims, arch->local_rope.dims);
    const size_t n = TG_MAX((size_t)t->positions * dims, TG_MAX(H, reach));
    const size_t own = (size_t)t->own_rows * dims;
    if (t->plain) put_plain_norms(t);
    if (!t->rope && !t->slopes && !t->bias) return TG_OK;
    float *host = tg_alloc_array(n, sizeof *host);
    if (!host) return tg_fail_nomem(err, n * sizeof *host);
    put_angles(t, 0, 0, t->positions, host);
    if (t->slopes) {
        tg_alibi_slopes(arch->n_heads, host);
        tg_backend_upload(t->be, t->slopes, host, H * sizeof *host);
    }
    if (t->bias) {
        int32_t *buckets = (int32_t *)(void *)host;
        tg_rel_buckets(arch->rel_buckets, arch->rel_distance, arch->kind == TG_KIND_ENCODER,
                       t->reach, buckets);
        tg_backend_upload(t->be, t->buckets, buckets, reach * sizeof *buckets);
    }
    tg_free(host);
    t->own_host = own ? tg_alloc_array(own, sizeof *t->own_host) : NULL;
    return own && !t->own_host ? tg_fail_nomem(err, own * sizeof *t->own_host) : TG_OK;
}
