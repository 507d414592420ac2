/* The shape of the model that a run trains: of a folder, or of a fresh one. */
#include "learner/train/run.h"

#include "common/base/alloc.h"
#include "common/config/locate.h"
#include "learner/train/fit.h"

#include <stdio.h>

static void fresh_arch(const tg_model_config *m, const tg_tokenizer *tokenizer, tg_arch *arch) {
    *arch = (tg_arch){.n_layers = (int)m->n_layer,
                      .n_heads = (int)m->n_head,
                      .n_kv_heads = (int)m->n_head,
                      .head_dim = (int)(m->n_embd / m->n_head),
                      .width = (int)m->n_embd,
                      .mlp_width = (int)m->n_inner,
                      .vocab_size = (int)m->vocab_size,
                      .max_positions = (int)m->n_positions,
                      .norm_eps = (float)m->layer_norm_epsilon,
                      .tied_head = true,
                      .bos_id = tg_tokenizer_bos(tokenizer),
                      .eos_id = tg_tokenizer_eos(tokenizer),
                      .pad_id = tg_tokenizer_pad(tokenizer)};
    snprintf(arch->family, sizeof arch->family, "%s", m->model_type);
    if (m->vocab_size == INT64_MIN) arch->vocab_size = tg_tokenizer_size(tokenizer);
}

tg_status tg_run_arch(const tg_node *root, const tg_train_settings *s,
                      const tg_tokenizer *tokenizer, tg_arch *arch, char **folder, tg_error *err) {
    const char *name = s->supervised ? s->sup.model_name : s->policy_args.model_name;
    const char *key = s->supervised ? "alg.model_name" : "alg.policy.args.model_name";
    *folder = NULL;
    tg_status st = TG_OK;
    if (name) {
        st = tg_model_locate(name, folder, err);
        if (st == TG_OK) st = tg_arch_load(arch, *folder, err);
        if (st != TG_OK) st = tg_node_blame(tg_node_at(root, key), key, st, err);
    } else {
        fresh_arch(&s->sup.fresh, tokenizer, arch);
    }
    if (st == TG_OK) st = tg_fit_model(root, s, arch, *folder, tokenizer, err);
    if (st != TG_OK) {
        tg_free(*folder);
        *folder = NULL;
    }
    return st;
}
