#include "learner/train/memory_networks.h"

#include "common/base/stock.h"
#include "learner/optim/optim.h"
#include "learner/rl/algo.h"

tg_network_bytes tg_network_bytes_of(const tg_train_settings *s, const tg_arch *arch,
                                     bool value_head, const tg_pass_caps *caps) {
    unsigned flags = s->train | (value_head ? TG_MODEL_VALUE_HEAD : 0);
    tg_params params;
    if (tg_model_params(&params, arch, flags, NULL) != TG_OK) return (tg_network_bytes){0};
    tg_network_bytes n = {tg_stock_bytes(params.total * sizeof(float)),
                          tg_stock_bytes(params.grad_total * sizeof(float)),
                          tg_optim_bytes(&s->optim, &params), 0};
    if (caps && s->algo->workspace) n.workspace = s->algo->workspace(arch, &params, *caps);
    tg_params_fini(&params);
    return n;
}

unsigned tg_pass_mode_of(const tg_train_settings *s) {
    return s->recompute ? TG_PASS_RECOMPUTE : TG_PASS_TRAIN;
}

uint64_t tg_pass_bytes_of(const tg_train_settings *s, const tg_arch *arch, tg_pass_caps caps) {
    return tg_stock_bytes(tg_pass_bytes(arch, s->train, caps, tg_pass_mode_of(s)));
}

static tg_arch with_values(const tg_arch *arch) {
    tg_arch headed = *arch;
    headed.value_head = true;
    return headed;
}

uint64_t tg_policy_pass_bytes(const tg_train_settings *s, const tg_arch *arch, tg_pass_caps caps) {
    const tg_arch headed = with_values(arch);
    return tg_pass_bytes_of(s, s->critic == TG_CRITIC_SEPARATE ? arch : &headed, caps);
}

uint64_t tg_critic_pass_bytes(const tg_train_settings *s, const tg_arch *arch, tg_pass_caps caps) {
    const tg_arch headed = with_values(arch);
    if (s->critic != TG_CRITIC_SEPARATE) return 0;
    caps.values = true;
    return tg_pass_bytes_of(s, &headed, caps);
}

uint64_t tg_reference_pass_bytes(const tg_arch *arch, tg_pass_caps caps) {
    return tg_stock_bytes(tg_pass_bytes(arch, 0, caps, TG_PASS_SCORE));
}
