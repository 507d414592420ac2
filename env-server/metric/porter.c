/* Porter's five steps over rule tables. Pure functions, any thread.
 *
 * Within a table the first suffix that fits decides: its rule is applied, or, when its condition does
 * not hold, the word stays as it is. */
#include "env-server/metric/porter.h"

#include <stdbool.h>
#include <string.h>

typedef struct stem {
    char *w;
    size_t n;
    tg_porter_mode mode;
} stem;

static bool is_vowel(char c) {
    return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

/* A y is a consonant exactly when it is the first letter or the one before it is none. */
static bool consonant(const char *w, size_t i) {
    if (is_vowel(w[i])) return false;
    bool flip = false;
    while (i > 0 && w[i] == 'y') i--, flip = !flip;
    return is_vowel(w[i]) == flip;
}

/* m of [C](VC)^m[V], for the first n letters. */
static unsigned measure(const char *w, size_t n) {
    unsigned m = 0;
    bool before = true, now;
    for (size_t i = 0; i < n; i++, before = now) {
        now = is_vowel(w[i]) ? false : w[i] == 'y' ? i == 0 || !before : true;
        if (i > 0 && now && !before) m++;
    }
    return m;
}

static bool has_vowel(const char *w, size_t n) {
    bool before = true, now;
    for (size_t i = 0; i < n; i++, before = now) {
        now = is_vowel(w[i]) ? false : w[i] == 'y' ? i == 0 || !before : true;
        if (!now) return true;
    }
    return false;
}

static bool ends_double_consonant(const char *w, size_t n) {
    return n >= 2 && w[n - 1] == w[n - 2] && consonant(w, n - 1);
}

/* consonant, vowel, consonant other than w, x, y at the end */
static bool ends_cvc(const char *w, size_t n, tg_porter_mode mode) {
    if (n >= 3 && consonant(w, n - 3) && !consonant(w, n - 2) && consonant(w, n - 1) &&
        w[n - 1] != 'w' && w[n - 1] != 'x' && w[n - 1] != 'y')
        return true;
    return mode == TG_PORTER_NLTK && n == 2 && !consonant(w, 0) && consonant(w, 1);
}

static bool ends(const stem *s, const char *suffix, size_t n) {
    return s->n >= n && !memcmp(s->w + s->n - n, suffix, n);
}

#define ENDS(s, text) ends(s, text, sizeof(text) - 1)

static void replace(stem *s, size_t suffix, const char *with) {
    size_t n = strlen(with);
    memcpy(s->w + s->n - suffix, with, n);
    s->n = s->n - suffix + n;
}

typedef struct rule {
    const char *suffix;
    size_t n;
    const char *with;
} rule;
#define RULE(a, b)                                                                                 \
    { a, sizeof(a) - 1, b }

/* The first rule whose suffix fits, or NULL. */
static const rule *find(const stem *s, const rule *rules, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ends(s, rules[i].suffix, rules[i].n)) return &rules[i];
    return NULL;
}

static void step_1a(stem *s) {
    if (s->n == 0 || s->w[s->n - 1] != 's') return;
    if (s->mode == TG_PORTER_NLTK && s->n == 4 && ENDS(s, "ies"))
        s->n = 3;
    else if (ENDS(s, "sses") || ENDS(s, "ies"))
        s->n -= 2;
    else if (!ENDS(s, "ss"))
        s->n--;
}

/* What follows when -ed or -ing was taken away. */
static void step_1b_tidy(stem *s) {
    if (ENDS(s, "at") || ENDS(s, "bl") || ENDS(s, "iz"))
        s->w[s->n++] = 'e'; /* NOLINT: the order of the rules is Porter's */
    else if (ends_double_consonant(s->w, s->n)) {
        char last = s->w[s->n - 1];
        if (last != 'l' && last != 's' && last != 'z') s->n--;
    } else if (measure(s->w, s->n) == 1 && ends_cvc(s->w, s->n, s->mode))
        s->w[s->n++] = 'e';
}

static void step_1b(stem *s) {
    if (s->n == 0 || (s->w[s->n - 1] != 'd' && s->w[s->n - 1] != 'g')) return;
    if (s->mode == TG_PORTER_NLTK && ENDS(s, "ied")) {
        s->n -= s->n == 4 ? 1 : 2;
        return;
    }
    if (ENDS(s, "eed")) {
        if (measure(s->w, s->n - 3) > 0) s->n--;
        return;
    }
    size_t suffix = ENDS(s, "ed") ? 2 : ENDS(s, "ing") ? 3 : 0;
    if (!suffix || !has_vowel(s->w, s->n - suffix)) return;
    s->n -= suffix;
    step_1b_tidy(s);
}

static void step_1c(stem *s) {
    if (!ENDS(s, "y")) return;
    size_t n = s->n - 1;
    bool change = s->mode == TG_PORTER_NLTK ? n > 1 && consonant(s->w, n - 1) : has_vowel(s->w, n);
    if (change) s->w[n] = 'i';
}

static void step_2(stem *s) {
    static const rule rules[] = {
        RULE("ational", "ate"), RULE("tional", "tion"), RULE("enci", "ence"),
        RULE("anci", "ance"),   RULE("izer", "ize"),    RULE("abli", "able"), /* [ABLI] */
        RULE("bli", "ble"),     RULE("alli", "al"),     RULE("entli", "ent"),
        RULE("eli", "e"),       RULE("ousli", "ous"),   RULE("ization", "ize"),
        RULE("ation", "ate"),   RULE("ator", "ate"),    RULE("alism", "al"),
        RULE("iveness", "ive"), RULE("fulness", "ful"), RULE("ousness", "ous"),
        RULE("aliti", "al"),    RULE("iviti", "ive"),   RULE("biliti", "ble"),
        RULE("fulli", "ful"),   RULE("logi", "log")};
    if (s->n < 4) return;
    while (s->mode == TG_PORTER_NLTK && ENDS(s, "alli") && measure(s->w, s->n - 4) > 0) s->n -= 2;
    const rule *r = find(s, rules, sizeof rules / sizeof *rules);
    if (!r) return;
    size_t left = s->n - r->n;
    if (s->mode == TG_PORTER_ORIGINAL && (!strcmp(r->suffix, "bli") || !strcmp(r->suffix, "logi")))
        return;
    if (s->mode != TG_PORTER_NLTK && !strcmp(r->suffix, "fulli")) return;
    /* NLTK counts the l of -logi with the stem, so that "geology" and "archaeology" agree. */
    if (s->mode == TG_PORTER_NLTK && !strcmp(r->suffix, "logi")) left++;
    /* -abli, -able only differ from -bli, -ble in the stem that is measured. */
    if (s->mode != TG_PORTER_ORIGINAL && !strcmp(r->suffix, "abli")) left++;
    if (measure(s->w, left) > 0) replace(s, r->n, r->with);
}

static void step_3(stem *s) {
    static const rule rules[] = {RULE("icate", "ic"), RULE("ative", ""),  RULE("alize", "al"),
                                 RULE("iciti", "ic"), RULE("ical", "ic"), RULE("ful", ""),
                                 RULE("ness", "")};
    if (s->n < 3) return;
    const rule *r = find(s, rules, sizeof rules / sizeof *rules);
    if (r && measure(s->w, s->n - r->n) > 0) replace(s, r->n, r->with);
}

static void step_4(stem *s) {
    static const rule rules[] = {
        RULE("al", ""),   RULE("ance", ""), RULE("ence", ""), RULE("er", ""),    RULE("ic", ""),
        RULE("able", ""), RULE("ible", ""), RULE("ant", ""),  RULE("ement", ""), RULE("ment", ""),
        RULE("ent", ""),  RULE("ion", ""),  RULE("ou", ""),   RULE("ism", ""),   RULE("ate", ""),
        RULE("iti", ""),  RULE("ous", ""),  RULE("ive", ""),  RULE("ize", "")};
    if (s->n < 2) return;
    const rule *r = find(s, rules, sizeof rules / sizeof *rules);
    if (!r) return;
    size_t left = s->n - r->n;
    if (measure(s->w, left) <= 1) return;
    if (!strcmp(r->suffix, "ion") && s->w[left - 1] != 's' && s->w[left - 1] != 't') return;
    s->n = left;
}

static void step_5(stem *s) {
    if (ENDS(s, "e")) {
        unsigned m = measure(s->w, s->n - 1);
        if (m > 1 || (m == 1 && !ends_cvc(s->w, s->n - 1, s->mode))) s->n--;
    }
    if (ENDS(s, "ll") && measure(s->w, s->n - 1) > 1) s->n--;
}

/* Words that NLTK looks up before anything else. */
static bool irregular(stem *s) {
    static const struct {
        const char *word, *stem;
    } table[] = {{"sky", "sky"},        {"skies", "sky"},        {"dying", "die"},
                 {"lying", "lie"},      {"tying", "tie"},        {"news", "news"},
                 {"innings", "inning"}, {"inning", "inning"},    {"outings", "outing"},
                 {"outing", "outing"},  {"cannings", "canning"}, {"canning", "canning"},
                 {"howe", "howe"},      {"proceed", "proceed"},  {"exceed", "exceed"},
                 {"succeed", "succeed"}};
    if (s->n < 3 || s->n > 8) return false;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].word) == s->n && !memcmp(table[i].word, s->w, s->n)) {
            s->n = strlen(table[i].stem);
            memcpy(s->w, table[i].stem, s->n);
            return true;
        }
    return false;
}

size_t tg_porter_stem(char *word, size_t len, tg_porter_mode mode) {
    stem s = {word, len, mode};
    if (mode == TG_PORTER_NLTK && irregular(&s)) return s.n;
    if (mode != TG_PORTER_ORIGINAL && len <= 2) return len;
    step_1a(&s);
    step_1b(&s);
    step_1c(&s);
    step_2(&s);
    step_3(&s);
    step_4(&s);
    step_5(&s);
    return s.n;
}
