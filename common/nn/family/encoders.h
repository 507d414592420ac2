/* What the encoder families share: layers that are normalised behind each branch, a pooler on a text's first state, labels. */
#ifndef TG_NN_FAMILY_ENCODERS_H
#define TG_NN_FAMILY_ENCODERS_H

#include "common/nn/family/decoders.h"

/* Rows of a weight and its bias. */
#define TG_PAIR(name_, role_, init_, bias_dim_, ...)                                               \
    TG_ROW(name_ ".weight", role_##_W, init_, __VA_ARGS__),                                        \
        TG_ROW(name_ ".bias", role_##_B, TG_INIT_ZERO, bias_dim_)
#define TG_PAIR_IF(field_, name_, role_, init_, bias_dim_, ...)                                    \
    TG_ROW_IF(field_, name_ ".weight", role_##_W, init_, __VA_ARGS__),                             \
        TG_ROW_IF(field_, name_ ".bias", role_##_B, TG_INIT_ZERO, bias_dim_)
#define TG_NORM_PAIR(name_, role_, dim_)                                                           \
    TG_ROW(name_ ".weight", role_##_W, TG_INIT_ONE, dim_),                                         \
        TG_ROW(name_ ".bias", role_##_B, TG_INIT_ZERO, dim_)

/* arch->n_labels. */
tg_status tg_labels_read(tg_arch *arch, const tg_config_json *config, tg_error *err) TG_MUST_CHECK;

/* Keys, then what is the same in all: TG_DATA or TG_UNSUPPORTED naming file, key, expected and found. The head is what
 * `architectures` says: labels for ...ForSequenceClassification; for others a pooler if the
 * weights have one, or the bare model's add_pooling_layer says so. */
tg_status tg_encoder_read(const tg_key *keys, tg_arch *arch, const tg_config_json *config,
                          const char *classes, tg_error *err) TG_MUST_CHECK;
/* False: out of memory. classes: "Bert" gives BertModel and BertForSequenceClassification. */
bool tg_encoder_write(const tg_key *keys, const tg_arch *arch, json_t *object, const char *classes);

#endif
