/* A slot: one episode of the token MDP as a state machine.
 *
 *     FREE -> READY (reset) -> RUNNING -> (SCORING) -> TERMINATED (EOS) | TRUNCATED (length) -> READY
 *
 * A step is named by (slot, episode, index of its first token). The next one is executed; the last
 * one again, with the same tokens, is answered as before (replayed), so a client may repeat a call
 * whose answer was lost. All else is refused: other tokens CONFLICT, older STALE, later GAP, not
 * running FAILED_STATE.
 *
 * One thread at a time uses a slot. Between step_begin and step_end only tg_slot_score may run, on
 * any thread. Results borrow from the slot until its next call. */
#ifndef TG_ENV_SLOT_H
#define TG_ENV_SLOT_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/text/decode_stream.h"
#include "env-server/env/env.h"
#include "proto/messages.h"

typedef enum tg_slot_state {
    TG_SLOT_FREE,
    TG_SLOT_READY,
    TG_SLOT_RUNNING,
    TG_SLOT_SCORING,
    TG_SLOT_TERMINATED,
    TG_SLOT_TRUNCATED
} tg_slot_state;

/* What a step did; kept to answer its repetition. */
typedef struct tg_slot_reply {
    bool valid;
    bool restored; /* from a log, which does not tell how its tokens were cut into steps */
    uint32_t step, n_sent, n_applied;
    uint64_t tokens_hash; /* of all tokens sent */
    tg_code code;
    tg_reward_status status;
    tg_stop stop;
    uint64_t digest;
} tg_slot_reply;

typedef struct tg_slot {
    uint32_t id;
    tg_slot_state state, before; /* before: the state to go back to when scoring finds no memory */
    tg_reset_item reset;         /* the reset under way, as it was asked for */
    uint64_t sample_index;
    tg_arena arena; /* of the sample */
    tg_sample sample;
    tg_ids prompt;
    tg_ids context;  /* start tokens, then the actions */
    double *rewards; /* one per action */
    size_t rewards_cap;
    uint64_t digest, reset_digest; /* now, and right after the reset */
    tg_slot_reply reply;           /* of the last finished step */
    tg_slot_reply pending;         /* of the step under way */
    bool want_text;
    tg_status scored;         /* of tg_slot_score */
    tg_buf text;              /* the decoded context, as far as text_tokens says */
    size_t text_tokens;       /* SIZE_MAX: text is not valid */
    tg_decode_stream *stream; /* long contexts are decoded as they grow; NULL: not yet */
    tg_decode_stream *spare;
    size_t streamed;    /* actions that are in the stream; SIZE_MAX: none, not even the start */
    size_t text_stable; /* bytes of text that later actions do not change */
    tg_buf shown;       /* text for the wire, where it has NUL bytes */
    tg_buf shorter;     /* the same without the newest token, while a reward wants it */
    tg_component *components; /* one per reward, then what these told of themselves */
    size_t n_components, cap_components;
    tg_reward_details details;
    tg_reward_value *values;
    char message[256];        /* why a call was refused */
    char reward_message[256]; /* why the last step has no reward */
} tg_slot;

/* Storage is the caller's. */
tg_status tg_slot_init(tg_slot *s, const tg_env *env, uint32_t id, tg_error *err) TG_MUST_CHECK;
void tg_slot_fini(tg_slot *s);

/* Starts an episode, or answers the same reset again. */
void tg_slot_reset(const tg_env *env, tg_slot *s, const tg_reset_item *item, bool want_text,
                   tg_reset_result *out);

/* Checks and applies the tokens. True: the rewards are still to be had (tg_slot_score, then
 * tg_slot_step_end); false: *out is the answer. */
bool tg_slot_step_begin(const tg_env *env, tg_slot *s, const tg_step_item *item, bool want_text,
                        tg_step_result *out);
void tg_slot_score(const tg_env *env, tg_slot *s);
void tg_slot_step_end(const tg_env *env, tg_slot *s, tg_step_result *out);
/* All three, for rewards that are quick. */
void tg_slot_step(const tg_env *env, tg_slot *s, const tg_step_item *item, bool want_text,
                  tg_step_result *out);

size_t tg_slot_length(const tg_env *env, const tg_slot *s); /* actions so far */

/* Rebuilds an episode from its log, without scoring; both digests must come out as given, else the slot is FREE and
 * the answer EPISODE_ABORTED. The slot must not be scoring. */
void tg_slot_restore(const tg_env *env, tg_slot *s, const tg_restore_item *item,
                     tg_restore_result *out);
/* What is committed: without the step under way, if there is one. Borrows from the slot. */
void tg_slot_snapshot(const tg_env *env, const tg_slot *s, tg_snapshot *out);
/* The step under way on `s` has taken too long: `fresh` (initialised) becomes what the slot would be after the step with a
 * reward that timed out, and *out its answer. Scoring may go on in s meanwhile, which is of no use afterwards. */
tg_status tg_slot_give_up(const tg_env *env, const tg_slot *s, tg_slot *fresh, tg_step_result *out,
                          tg_error *err) TG_MUST_CHECK;

#endif
