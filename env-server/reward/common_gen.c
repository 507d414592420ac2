/* The rewards of CommonGen: RL4LMs's penalty on repeating the prompt, TRIL's cover of concepts. */
#include "env-server/reward/common_gen.h"

#include "common/base/map.h"
#include "env-server/metric/porter.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/rows.h"

#include <string.h>

static const char instruction[] = "generate a sentence with: ";

static bool holds(const tg_buf *text, const char *part, size_t len) {
    return len == 0 || (text->len && memmem(text->data, text->len, part, len));
}

/* What stands behind the instruction, up to the next one; NULL: no instruction. */
static const char *concepts_of(const char *prompt, size_t *len) {
    const char *begin = strstr(prompt, instruction);
    if (!begin) return NULL;
    begin += strlen(instruction);
    const char *end = strstr(begin, instruction);
    *len = end ? (size_t)(end - begin) : strlen(begin);
    return begin;
}

tg_status tg_repeat_penalty(const char *prompt, const char *text, size_t len, double *out,
                            tg_error *err) {
    size_t n;
    const char *concepts = concepts_of(prompt, &n);
    if (!concepts)
        return tg_fail(err, TG_DATA, "the prompt has no \"%s\"; found \"%.60s\"", instruction,
                       prompt);
    if (n) /* without its last character */
        do n--;
        while (n && ((unsigned char)concepts[n] & 0xC0) == 0x80);
    tg_buf lower = {0}, wanted = {0};
    tg_py_lower(&lower, text, len);
    tg_py_lower(&wanted, concepts, n);
    bool repeats = holds(&lower, wanted.data, wanted.len) ||
                   holds(&lower, instruction, strlen(instruction)) ||
                   holds(&lower, "generate", 8) || holds(&lower, "sentence", 8);
    bool failed = lower.failed || wanted.failed;
    tg_buf_fini(&lower);
    tg_buf_fini(&wanted);
    *out = repeats ? -1 : 0;
    return failed ? tg_fail_nomem(err, len) : TG_OK;
}

/* Stems the lower-cased pieces between single spaces into the map. */
static bool stems_of(const char *text, size_t len, tg_map *out) {
    tg_buf lower = {0};
    bool ok = true;
    for (size_t at = 0; at <= len && ok;) {
        const char *end = memchr(text + at, ' ', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        tg_buf_reset(&lower);
        tg_py_lower(&lower, text + at, n);
        ok = !lower.failed && tg_buf_reserve(&lower, 2);
        if (ok && lower.len)
            ok = tg_map_set(out, lower.data, tg_porter_stem(lower.data, lower.len, TG_PORTER_NLTK),
                            1);
        at += n + 1;
    }
    tg_buf_fini(&lower);
    return ok;
}

tg_status tg_concept_cover(const char *prompt, const char *text, size_t len, double *out,
                           tg_error *err) {
    size_t n = strlen(prompt), found = 0;
    const char *concepts = concepts_of(prompt, &n);
    if (!concepts) concepts = prompt;
    while (n && (concepts[n - 1] == '.' || concepts[n - 1] == ' ' || concepts[n - 1] == '\n')) n--;
    tg_map wanted = {0}, words = {0};
    bool ok = stems_of(concepts, n, &wanted) && stems_of(text, len, &words);
    uint64_t one;
    for (size_t i = 0; i < wanted.count && ok; i++)
        found += tg_map_get(&words, wanted.entries[i].key, wanted.entries[i].key_len, &one);
    *out = wanted.count ? (double)found / (double)wanted.count : 0;
    tg_map_fini(&wanted);
    tg_map_fini(&words);
    return ok ? TG_OK : tg_fail_nomem(err, len);
}

typedef tg_status rule(const char *prompt, const char *text, size_t len, double *out,
                       tg_error *err);

static tg_status score(rule *value, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (in[i].done)
            st = value(in[i].sample->prompt_text, in[i].text, in[i].text_len, &out[i].value, err);
    }
    return st;
}

static tg_status score_penalty(const void *state, const tg_reward_input *in, size_t n,
                               tg_reward_value *out, tg_error *err) {
    (void)state;
    return score(tg_repeat_penalty, in, n, out, err);
}

static tg_status score_cover(const void *state, const tg_reward_input *in, size_t n,
                             tg_reward_value *out, tg_error *err) {
    (void)state;
    return score(tg_concept_cover, in, n, out, err);
}

static const tg_opt no_options[] = {TG_OPT_END};

#define RULE(id, text, function)                                                                   \
    {                                                                                              \
        .entry = {.name = id, .summary = text, .options = no_options, .built = true},              \
        .terminal = true, .deterministic = true, .score = function                                 \
    }
static const char penalty[] = "-1 when the text repeats the prompt's words, else 0.";

const tg_reward_ops tg_reward_repeat_penalty =
    RULE("common_gen_repeat_penalty", penalty, score_penalty);
/* Scores come in batches here anyway: the same function under its other name. */
const tg_reward_ops tg_reward_repeat_penalty_batched =
    RULE("common_gen_repeat_penalty_batched", penalty, score_penalty);
const tg_reward_ops tg_reward_concept_cover =
    RULE("common_gen_concept_cover",
         "Share of the prompt's concepts that the text uses, by Porter stem.", score_cover);
