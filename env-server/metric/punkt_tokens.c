/* Punkt's decisions: a first pass by the type of each token, a second by its neighbour (the paper's
 * sections 4.1 to 4.3), over the few tokens around each possible end of a sentence. */
#include "env-server/metric/punkt_impl.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <string.h>

typedef struct tg_punkt_token {
    const uint32_t *c;
    size_t n;
    size_t type, type_len; /* in the buffer of lower-cased types */
    bool sentbreak, abbr, ellipsis, number;
} token;

/* Length of -- , .. or ". . ." at c, 0 when there is none. */
static size_t multi_char(const tg_punkt *p, const uint32_t *c, size_t n) {
    size_t k = 0;
    if (n < 2 || (c[0] != '-' && c[0] != '.')) return 0;
    while (k < n && c[k] == c[0]) k++;
    if (k >= 2) return k;
    if (c[0] != '.') return 0;
    size_t pairs = 0;
    while (2 * pairs + 1 < n && c[2 * pairs] == '.' && tg_punkt_is_space(p, c[2 * pairs + 1]))
        pairs++;
    if (2 * pairs < n && c[2 * pairs] == '.' && pairs >= 2) return 2 * pairs + 1;
    return pairs >= 3 ? 2 * pairs - 1 : 0;
}

static bool ends_word(const tg_punkt *p, const uint32_t *c, size_t n) {
    return n == 0 || tg_punkt_is_space(p, c[0]) || tg_punkt_is_non_word(p, c[0]) ||
           multi_char(p, c, n) > 0;
}

/* Length of the token at c, which is no space. */
static size_t token_length(const tg_punkt *p, const uint32_t *c, size_t n) {
    size_t k = multi_char(p, c, n);
    if (k) return k;
    if (tg_punkt_is_one_of(c[0], "(\"`{[:;&#*@)}]-,")) return 1;
    for (k = 1; !ends_word(p, c + k, n - k); k++)
        if (c[k] == ',' && ends_word(p, c + k + 1, n - k - 1)) break;
    return k;
}

/* -?[.,]?\d[\d,.-]*\.? and nothing else. */
static bool is_numeric(const uint32_t *c, size_t n) {
    size_t i = n > 0 && c[0] == '-';
    if (i < n && (c[i] == '.' || c[i] == ',')) i++;
    if (i >= n || tg_py_decimal(c[i]) < 0) return false;
    for (; i < n; i++)
        if (tg_py_decimal(c[i]) < 0 && !tg_punkt_is_one_of(c[i], ",.-")) return false;
    return true;
}

static bool all_dots(const token *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->c[i] != '.') return false;
    return t->n >= 2;
}

static uint64_t known(const tg_punkt *p, const char *word, size_t len) {
    uint64_t flags = 0;
    tg_map_get(&p->words, word, len, &flags);
    return flags;
}

static void lower_points(tg_sentences *s, const uint32_t *c, size_t n) {
    bool ascii = true;
    for (size_t i = 0; i < n && ascii; i++) ascii = c[i] < 0x80;
    size_t at = s->lower.len;
    tg_points_write(&s->lower, c, n);
    if (s->lower.failed) return;
    if (ascii) {
        for (size_t i = at; i < s->lower.len; i++)
            if (s->lower.data[i] >= 'A' && s->lower.data[i] <= 'Z') s->lower.data[i] += 32;
        return;
    }
    tg_buf copy = {0};
    tg_py_lower(&copy, s->lower.data + at, s->lower.len - at);
    s->lower.len = at;
    tg_buf_append(&s->lower, copy.data, copy.len);
    s->lower.failed |= copy.failed;
    tg_buf_fini(&copy);
}

/* The first pass: type, and what the token alone says. */
static void annotate(const tg_punkt *p, tg_sentences *s, token *t) {
    t->type = s->lower.len;
    t->number = is_numeric(t->c, t->n);
    if (t->number)
        tg_buf_puts(&s->lower, "##number##");
    else
        lower_points(s, t->c, t->n);
    t->type_len = s->lower.len - t->type;
    if (s->lower.failed) return;
    uint32_t last = t->c[t->n - 1];
    if (t->n == 1 && tg_punkt_is_end(last)) {
        t->sentbreak = true;
    } else if (all_dots(t)) {
        t->ellipsis = true;
    } else if (last == '.' && t->c[t->n - 2] != '.') {
        size_t at = s->lower.len; /* of a number too, the word itself is looked up */
        lower_points(s, t->c, t->n - 1);
        if (s->lower.failed) return;
        const char *word = s->lower.data + at, *tail = word;
        size_t len = s->lower.len - at;
        for (const char *q = word; q < word + len; q++)
            if (*q == '-') tail = q + 1;
        t->abbr = (known(p, word, len) & TG_PUNKT_ABBREVIATION) ||
                  (known(p, tail, len - (size_t)(tail - word)) & TG_PUNKT_ABBREVIATION);
        t->sentbreak = !t->abbr;
        s->lower.len = at;
    }
}

typedef enum evidence { NO, YES, UNKNOWN } evidence;

/* 4.1.1: does the token look like the first of a sentence? */
static evidence orthographic(const token *t, uint64_t flags) {
    if (t->n == 1 && tg_punkt_is_one_of(t->c[0], ";:,.!?")) return NO;
    if (tg_py_isupper(t->c[0]) && (flags & TG_PUNKT_STARTS)) return YES;
    if (tg_py_islower(t->c[0]) && !(flags & TG_PUNKT_BEGINS)) return NO;
    return UNKNOWN;
}

/* The second pass over a pair of neighbours; changes t. */
static void reconsider(const tg_punkt *p, tg_sentences *s, token *t, const token *next) {
    if (t->c[t->n - 1] != '.') return;
    const char *types = s->lower.data;
    const char *typ = types + t->type, *next_typ = types + next->type;
    size_t typ_len = t->type_len, next_len = next->type_len;
    if (typ_len > 1 && typ[typ_len - 1] == '.') typ_len--;
    if (next->sentbreak && next_len > 1 && next_typ[next_len - 1] == '.') next_len--;
    bool initial = t->n == 2 && tg_nltk_word(p->rules, t->c[0]) && tg_py_decimal(t->c[0]) < 0;

    char pair[64];
    if (typ_len + next_len + 1 <= sizeof pair) {
        memcpy(pair, typ, typ_len);
        pair[typ_len] = '\t';
        memcpy(pair + typ_len + 1, next_typ, next_len);
        uint64_t one;
        if (tg_map_get(&p->collocations, pair, typ_len + 1 + next_len, &one)) {
            t->sentbreak = false;
            return;
        }
    }
    uint64_t flags = known(p, next_typ, next_len);
    evidence starts = orthographic(next, flags);
    bool upper = tg_py_isupper(next->c[0]);
    if ((t->abbr || t->ellipsis) && !initial &&
        (starts == YES || (upper && (flags & TG_PUNKT_STARTER)))) {
        t->sentbreak = true;
        return;
    }
    if (!initial && !t->number) return;
    if (starts == NO || (starts == UNKNOWN && initial && upper && !(flags & TG_PUNKT_LOWER)))
        t->sentbreak = false;
}

tg_status tg_punkt_has_break(const tg_punkt *p, const uint32_t *c, size_t n, tg_sentences *s,
                             bool *out, tg_error *err) {
    size_t count = 0, line = 0;
    tg_buf_reset(&s->lower);
    for (size_t at = 0; at < n;) {
        if (tg_punkt_is_space(p, c[at])) {
            at++;
            continue;
        }
        if (line <= at) { /* tokens do not cross lines, and a line of spaces has none */
            bool blank = true;
            for (line = at; line < n && c[line] != '\n'; line++) blank &= tg_py_space(c[line]);
            if (blank) {
                at = line;
                continue;
            }
        }
        if (count == s->tokens_cap) {
            size_t cap = count ? 2 * count : 16;
            token *tokens = tg_realloc_array(s->tokens, cap, sizeof *tokens);
            if (!tokens) return tg_fail_nomem(err, cap * sizeof *tokens);
            s->tokens = tokens, s->tokens_cap = cap;
        }
        s->tokens[count] = (token){.c = c + at, .n = token_length(p, c + at, line - at)};
        annotate(p, s, &s->tokens[count]);
        at += s->tokens[count++].n;
    }
    if (s->lower.failed) return tg_fail_nomem(err, s->lower.len);
    *out = false;
    for (size_t i = 0; i + 1 < count && !*out; i++) {
        reconsider(p, s, &s->tokens[i], &s->tokens[i + 1]);
        *out = s->tokens[i].sentbreak;
    }
    return TG_OK;
}
