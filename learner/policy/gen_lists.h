/* The settings of generation that are lists, or one of several types. Private to gen_settings.c.
 * Each reads a node (NULL or null: nothing given); what does not fit is TG_CONFIG naming file, line and key. */
#ifndef TG_POLICY_GEN_LISTS_H
#define TG_POLICY_GEN_LISTS_H

#include "learner/policy/gen_settings.h"

typedef struct tg_gen_nodes {
    const char *path;
    tg_arena *arena;
    tg_error *err;
} tg_gen_nodes;

/* A token id or a list of them. */
tg_status tg_gen_read_ids(const tg_gen_nodes *n, const char *key, const tg_node *node,
                          tg_id_list *out) TG_MUST_CHECK;
/* A list of lists of token ids, none of them empty. */
tg_status tg_gen_read_lists(const tg_gen_nodes *n, const char *key, const tg_node *node,
                            tg_id_list **out, int *n_out) TG_MUST_CHECK;
tg_status tg_gen_read_early(const tg_gen_nodes *n, tg_gen_settings *s) TG_MUST_CHECK;
tg_status tg_gen_read_biases(const tg_gen_nodes *n, tg_gen_settings *s) TG_MUST_CHECK;
tg_status tg_gen_read_decay(const tg_gen_nodes *n, tg_gen_settings *s) TG_MUST_CHECK;
tg_status tg_gen_read_eos(const tg_gen_nodes *n, tg_gen_settings *s) TG_MUST_CHECK;

#endif
