/* The table of the reference backend; memory is ordinary memory. */
#include "common/nn/ref/ref.h"

#include "common/base/alloc.h"

#include <string.h>

static void *ref_alloc(tg_backend *be, size_t bytes) {
    (void)be;
    return tg_alloc_aligned(bytes, 64);
}

static void ref_free(tg_backend *be, void *p) {
    (void)be;
    tg_free(p);
}

static void ref_upload(tg_backend *be, void *device, const void *host, size_t bytes) {
    (void)be;
    memcpy(device, host, bytes);
}

static void ref_download(tg_backend *be, void *host, const void *device, size_t bytes) {
    (void)be;
    memcpy(host, device, bytes);
}

static const tg_ops ref_ops = {
    .matmul = tg_ref_matmul,
    .linear = tg_ref_linear,
    .weight_pack = tg_ref_weight_pack,
    .weight_rows = tg_ref_weight_rows,
    .bias_forward = tg_ref_bias_forward,
    .bias_backward = tg_ref_bias_backward,
    .layernorm_forward = tg_ref_layernorm_forward,
    .layernorm_backward = tg_ref_layernorm_backward,
    .rmsnorm_forward = tg_ref_rmsnorm_forward,
    .rmsnorm_backward = tg_ref_rmsnorm_backward,
    .rope = tg_ref_rope,
    .embed_forward = tg_ref_embed_forward,
    .embed_backward = tg_ref_embed_backward,
    .gather_rows = tg_ref_gather_rows,
    .scatter_add_rows = tg_ref_scatter_add_rows,
    .put_rows = tg_ref_put_rows,
    .attention_forward = tg_ref_attention_forward,
    .attention_backward = tg_ref_attention_backward,
    .attention_decode = tg_ref_attention_decode,
    .act_forward = tg_ref_act_forward,
    .act_backward = tg_ref_act_backward,
    .gated_forward = tg_ref_gated_forward,
    .gated_backward = tg_ref_gated_backward,
    .softcap = tg_ref_softcap,
    .add = tg_ref_add,
    .scale = tg_ref_scale,
    .fill = tg_ref_fill,
    .copy = tg_ref_copy,
    .sumsq = tg_ref_sumsq,
    .head_forward = tg_ref_head_forward,
    .head_backward = tg_ref_head_backward,
    .adamw = tg_ref_adamw,
    .adam8 = tg_ref_adam8,
    .rmsprop = tg_ref_rmsprop,
    .sgd = tg_ref_sgd,
    .gated_tangent = tg_ref_gated_tangent,
    .mul_heads = tg_ref_mul_heads,
    .attention_tangent = tg_ref_attention_tangent,
    .fisher_mean = tg_ref_fisher_mean,
    .fisher_grad = tg_ref_fisher_grad,
};

const struct tg_backend_ops tg_ref_backend = {
    .name = "ref",
    .summary = "naive loops that define the ops; one thread, for tests",
    .ops = &ref_ops,
    .alloc = ref_alloc,
    .free = ref_free,
    .upload = ref_upload,
    .download = ref_download,
};
