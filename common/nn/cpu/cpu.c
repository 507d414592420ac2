/* The table of the cpu backend, its memory, and how loops are cut for the team. */
#include "common/nn/cpu/cpu.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void cpu_open(tg_backend *be) {
    be->kernels = tg_cpu_kernels_choose();
}

static bool cpu_fast_bf16(void) {
    return tg_cpu_kernels_choose()->gemm_pairs != NULL;
}

/* What is large is made of pages that stay with the backend. */
static void *cpu_alloc(tg_backend *be, size_t bytes) {
    return bytes >= TG_STOCK_LARGE ? tg_stock_alloc(&be->stock, bytes)
                                   : tg_alloc_aligned(bytes, 64);
}

static void cpu_free(tg_backend *be, void *p) {
    tg_backend_host_free(be, p);
}

static void cpu_rest(tg_backend *be, void *p, size_t bytes) {
    if (tg_stock_has(&be->stock, p))
        tg_stock_rest(&be->stock, p);
    else
        memset(p, 0, bytes);
}

static bool cpu_wake(tg_backend *be, void *p) {
    return !tg_stock_has(&be->stock, p) || tg_stock_wake(&be->stock, p);
}

/* Whole pages go back to the system, which gives zeros in their place; the ends are filled. */
static void cpu_release(tg_backend *be, void *p, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *from = p, *to = from + bytes;
    char *begin = from + (page - (size_t)from % page) % page, *end = to - (size_t)to % page;
    (void)be;
    if (begin >= end || madvise(begin, (size_t)(end - begin), MADV_DONTNEED)) {
        memset(from, 0, bytes);
        return;
    }
    memset(from, 0, (size_t)(begin - from));
    memset(end, 0, (size_t)(to - end));
}

static void cpu_upload(tg_backend *be, void *device, const void *host, size_t bytes) {
    (void)be;
    memcpy(device, host, bytes);
}

static void cpu_download(tg_backend *be, void *host, const void *device, size_t bytes) {
    (void)be;
    memcpy(host, device, bytes);
}

float *tg_cpu_gemm_scratch(tg_backend *be) {
    return (float *)tg_backend_scratch(be, be->vtable->scratch_bytes) + TG_CPU_OP_FLOATS;
}

typedef struct range_job {
    size_t n, grain;
    tg_cpu_range_fn *work;
    void *arg;
} range_job;

static void range_tile(void *arg, int tile) {
    const range_job *job = arg;
    size_t first = (size_t)tile * job->grain;
    job->work(job->arg, first, TG_MIN(job->grain, job->n - first));
}

void tg_cpu_for(tg_backend *be, size_t n, size_t grain, tg_cpu_range_fn *work, void *arg) {
    range_job job = {n, TG_MAX(grain, n / INT_MAX + 1), work, arg};
    tg_team_run(be->team, (int)((n + job.grain - 1) / job.grain), range_tile, &job);
}

size_t tg_cpu_grain(size_t floats, int C) {
    return C > 0 && (size_t)C < floats ? floats / (size_t)C : 1;
}

static const tg_ops cpu_ops = {
    .matmul = tg_cpu_matmul,
    .linear = tg_cpu_linear,
    .weight_pack = tg_cpu_weight_pack,
    .weight_rows = tg_cpu_weight_rows,
    .bias_forward = tg_cpu_bias_forward,
    .bias_backward = tg_cpu_bias_backward,
    .layernorm_forward = tg_cpu_layernorm_forward,
    .layernorm_backward = tg_cpu_layernorm_backward,
    .rmsnorm_forward = tg_cpu_rmsnorm_forward,
    .rmsnorm_backward = tg_cpu_rmsnorm_backward,
    .rope = tg_cpu_rope,
    .embed_forward = tg_cpu_embed_forward,
    .embed_backward = tg_cpu_embed_backward,
    .gather_rows = tg_cpu_gather_rows,
    .scatter_add_rows = tg_cpu_scatter_add_rows,
    .put_rows = tg_cpu_put_rows,
    .attention_forward = tg_cpu_attention_forward,
    .attention_backward = tg_cpu_attention_backward,
    .attention_decode = tg_cpu_attention_decode,
    .act_forward = tg_cpu_act_forward,
    .act_backward = tg_cpu_act_backward,
    .gated_forward = tg_cpu_gated_forward,
    .gated_backward = tg_cpu_gated_backward,
    .softcap = tg_cpu_softcap,
    .add = tg_cpu_add,
    .scale = tg_cpu_scale,
    .fill = tg_cpu_fill,
    .copy = tg_cpu_copy,
    .sumsq = tg_cpu_sumsq,
    .head_forward = tg_cpu_head_forward,
    .head_backward = tg_cpu_head_backward,
    .adamw = tg_cpu_adamw,
    .adam8 = tg_cpu_adam8,
    .rmsprop = tg_cpu_rmsprop,
    .sgd = tg_cpu_sgd,
    .gated_tangent = tg_cpu_gated_tangent,
    .mul_heads = tg_cpu_mul_heads,
    .attention_tangent = tg_cpu_attention_tangent,
    .fisher_mean = tg_cpu_fisher_mean,
    .fisher_grad = tg_cpu_fisher_grad,
};

const struct tg_backend_ops tg_cpu_backend = {
    .name = "cpu",
    .summary = "vector kernels (AVX-512, AVX2 or plain) on all cores",
    .ops = &cpu_ops,
    .scratch_bytes = (TG_CPU_OP_FLOATS + TG_CPU_GEMM_FLOATS) * sizeof(float),
    .scratch_used = tg_cpu_scratch_used,
    .threaded = true,
    .host_memory = true,
    .fast_bf16 = cpu_fast_bf16,
    .open = cpu_open,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .release = cpu_release,
    .rest = cpu_rest,
    .wake = cpu_wake,
    .upload = cpu_upload,
    .download = cpu_download,
};
