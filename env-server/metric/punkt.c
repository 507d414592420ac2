/* What Punkt knows of English: abbreviations, words that begin sentences, pairs that hold together; and which characters are
 * spaces and words. */
#include "env-server/metric/punkt_impl.h"

#include "common/base/alloc.h"
#include "common/text/unicode.h"
#include "env-server/metric/pystr.h"

#include <string.h>

static bool add(tg_map *m, const char *word, size_t len, uint64_t flag) {
    uint64_t old = 0;
    tg_map_get(m, word, len, &old);
    return tg_map_set(m, word, len, old | flag);
}

static bool add_lines(tg_map *m, const char *lines, uint64_t flag) {
    for (size_t n; *lines; lines += n + 1) {
        n = strcspn(lines, "\n");
        if (!add(m, lines, n, flag)) return false;
    }
    return true;
}

static bool add_front_coded(tg_map *m, const char *text, uint64_t flag) {
    char word[64];
    size_t len = 0;
    for (const char *p = text; *p;) {
        len = (size_t)(*p++ - 'A');
        while (*p && !(*p >= 'A' && *p <= 'Z') && len < sizeof word) word[len++] = *p++;
        if (!add(m, word, len, flag)) return false;
    }
    return true;
}

tg_status tg_punkt_create(tg_punkt **out, tg_nltk_rules rules, tg_error *err) {
    *out = NULL;
    tg_punkt *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->rules = rules;
    if (!add_front_coded(&p->words, tg_punkt_starts, TG_PUNKT_LOWER | TG_PUNKT_STARTS) ||
        !add_front_coded(&p->words, tg_punkt_cased, TG_PUNKT_LOWER) ||
        !add_lines(&p->words, tg_punkt_begins, TG_PUNKT_BEGINS) ||
        !add_lines(&p->words, tg_punkt_starters, TG_PUNKT_STARTER) ||
        !add_lines(&p->words, tg_punkt_abbreviations, TG_PUNKT_ABBREVIATION) ||
        !add_lines(&p->collocations, tg_punkt_collocations, 1)) {
        tg_punkt_destroy(&p);
        return tg_fail(err, TG_NOMEM, "out of memory for the sentence splitter");
    }
    *out = p;
    return TG_OK;
}

void tg_punkt_destroy(tg_punkt **p) {
    if (!*p) return;
    tg_map_fini(&(*p)->words);
    tg_map_fini(&(*p)->collocations);
    tg_free(*p);
    *p = NULL;
}

bool tg_nltk_space(tg_nltk_rules rules, uint32_t c) {
    return tg_py_space(c) && (rules == TG_NLTK_3_7 || c < 28 || c > 31);
}

bool tg_nltk_word(tg_nltk_rules rules, uint32_t c) {
    if (rules == TG_NLTK_3_7 || c < 0x80 || (c >= 0xD800 && c < 0xE000)) return tg_py_isword(c);
    return tg_unicode_is_word(c);
}
