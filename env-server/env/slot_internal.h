/* What the files of a slot share: slot.c (memory, reset), slot_step.c (the step), slot_score.c and slot_ahead.c (its rewards),
 * slot_text.c (its text) and slot_restore.c (episodes from a log). */
#ifndef TG_ENV_SLOT_INTERNAL_H
#define TG_ENV_SLOT_INTERNAL_H

#include "env-server/env/slot.h"

/* The digest after one more token. value NaN: the token has no reward; which way it failed is not part of the digest, since a log
 * of rewards does not tell. */
uint64_t tg_slot_chain(uint64_t digest, int32_t token, double value);
/* Ends whatever the slot held and begins the episode; on failure the slot is FREE. */
tg_status tg_slot_begin(const tg_env *env, tg_slot *s, const tg_reset_item *item,
                        tg_error *err) TG_MUST_CHECK;
tg_status tg_slot_reserve(tg_slot *s, size_t n_rewards, tg_error *err) TG_MUST_CHECK;
/* Why the episode ends with its newest action; TG_STOP_NONE: it does not. */
tg_stop tg_slot_ends(const tg_env *env, const tg_slot *s);
/* (slot_restore.c) Whether the step is the newest one of a restored episode: its tokens are the last ones of the log. */
bool tg_slot_is_restored_step(const tg_env *env, const tg_slot *s, const tg_step_item *item);
/* Its answer, out of the log, becomes s->reply. */
void tg_slot_recall(const tg_env *env, tg_slot *s, const tg_step_item *item, uint64_t tokens_hash);
void tg_slot_set_state(tg_slot *s, tg_stop stop);
/* The answer to the step in s->reply. */
void tg_slot_answer(const tg_env *env, tg_slot *s, bool want_text, bool replayed,
                    tg_step_result *out);
/* (*out)[k][i]: reward k of the i-th token of the step under way, where it was asked for ahead; (*out)[k] NULL: it was not.
 * *out NULL: none was. Everything is in the arena. TG_BUSY: no room in a queue. (slot_ahead.c) */
tg_status tg_slot_score_ahead(const tg_env *env, tg_slot *s, tg_arena *arena,
                              tg_reward_value ***out, tg_error *err) TG_MUST_CHECK;

/* slot_text.c: decodes the first n actions into s->text. */
tg_status tg_slot_text(const tg_env *env, tg_slot *s, size_t n, tg_error *err) TG_MUST_CHECK;
/* The same into s->shorter. */
tg_status tg_slot_text_before(const tg_env *env, tg_slot *s, size_t n, tg_error *err) TG_MUST_CHECK;
/* s->text without NUL bytes, which end strings on the wire. */
const char *tg_slot_text_for_wire(tg_slot *s);

#endif
