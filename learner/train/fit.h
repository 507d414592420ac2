/* Whether a config, its model and its tokenizer go together: asked before anything large is made. Messages have file, line and key of
 * what can be changed. */
#ifndef TG_TRAIN_FIT_H
#define TG_TRAIN_FIT_H

#include "common/config/tree.h"
#include "common/nn/arch.h"
#include "common/text/tokenizer.h"
#include "learner/train/settings.h"

/* root: of the config. folder: the model's, NULL for a fresh one. tokenizer NULL: not asked. */
tg_status tg_fit_model(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                       const char *folder, const tg_tokenizer *tokenizer,
                       tg_error *err) TG_MUST_CHECK;
/* TG_CONFIG when rollouts would stop before an episode of the environment can end. */
tg_status tg_fit_episode(const tg_node *root, const tg_train_settings *s,
                         int64_t max_episode_length, tg_error *err) TG_MUST_CHECK;
/* Tokens of the longest text of a run: as many as the model was trained with; where the config says how long prompts may be, as many as
 * it can learn from. */
int tg_fit_positions(const tg_node *root, const tg_arch *arch);
/* Prompts and new tokens have room in so many positions. */
tg_status tg_fit_lengths(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                         int64_t max_prompt, int64_t max_new, tg_error *err) TG_MUST_CHECK;
/* Appends a line about what num_layers_unfrozen leaves to be trained; nothing when all is. */
void tg_fit_describe(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                     tg_buf *out);

#endif
