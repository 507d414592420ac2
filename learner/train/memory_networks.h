/* Bytes of the networks that a config trains, and of the passes that train them: the figures of the modules that will allocate them. */
#ifndef TG_TRAIN_MEMORY_NETWORKS_H
#define TG_TRAIN_MEMORY_NETWORKS_H

#include "common/nn/arch.h"
#include "common/nn/pass.h"
#include "learner/train/settings.h"

#include <stdint.h>

typedef struct tg_network_bytes {
    uint64_t params, grads, state, workspace; /* state: of the optimizer */
} tg_network_bytes;

/* One trained network. caps: of the passes of an update whose workspace is wanted; NULL: it is not. All 0 where the architecture is not one. */
tg_network_bytes tg_network_bytes_of(const tg_train_settings *s, const tg_arch *arch,
                                     bool value_head, const tg_pass_caps *caps);

/* Activations of one pass that trains. */
uint64_t tg_pass_bytes_of(const tg_train_settings *s, const tg_arch *arch, tg_pass_caps caps);
/* Those of the policy's passes in an update, and of its critic's, where that is a network of its own. */
uint64_t tg_policy_pass_bytes(const tg_train_settings *s, const tg_arch *arch, tg_pass_caps caps);
uint64_t tg_critic_pass_bytes(const tg_train_settings *s, const tg_arch *arch, tg_pass_caps caps);
/* Those of a pass of the reference. */
uint64_t tg_reference_pass_bytes(const tg_arch *arch, tg_pass_caps caps);

unsigned tg_pass_mode_of(const tg_train_settings *s);

#endif
