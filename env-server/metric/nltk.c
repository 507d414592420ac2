/* Splitting into sentences, then each sentence into words. */
#include "env-server/metric/nltk.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"
#include "env-server/metric/treebank.h"

#include <string.h>

struct tg_nltk {
    tg_punkt *punkt;
    tg_nltk_rules rules;
};

tg_status tg_nltk_create(tg_nltk **out, tg_nltk_rules rules, tg_error *err) {
    *out = NULL;
    tg_nltk *w = tg_alloc(sizeof *w);
    if (!w) return tg_fail_nomem(err, sizeof *w);
    w->rules = rules;
    tg_status st = tg_punkt_create(&w->punkt, rules, err);
    if (st == TG_OK)
        *out = w;
    else
        tg_free(w);
    return st;
}

void tg_nltk_destroy(tg_nltk **w) {
    if (!*w) return;
    tg_punkt_destroy(&(*w)->punkt);
    tg_free(*w);
    *w = NULL;
}

void tg_nltk_list_clear(tg_nltk_list *l) {
    tg_buf_reset(&l->bytes);
    l->n = 0;
}

void tg_nltk_list_fini(tg_nltk_list *l) {
    tg_buf_fini(&l->bytes);
    tg_free(l->words);
    tg_points_fini(&l->text);
    tg_points_fini(&l->work[0]);
    tg_points_fini(&l->work[1]);
    tg_sentences_fini(&l->sentences);
    memset(l, 0, sizeof *l);
}

static bool room(tg_nltk_list *l) {
    if (l->n < l->cap) return true;
    size_t cap = l->cap ? 2 * l->cap : 64;
    tg_nltk_word_span *words = tg_realloc_array(l->words, cap, sizeof *words);
    if (!words) return false;
    l->words = words, l->cap = cap;
    return true;
}

static bool add_points(tg_nltk_list *l, const uint32_t *c, size_t n) {
    if (!room(l)) return false;
    size_t at = l->bytes.len;
    tg_points_write(&l->bytes, c, n);
    l->words[l->n++] = (tg_nltk_word_span){at, l->bytes.len - at};
    tg_buf_putc(&l->bytes, 0);
    return !l->bytes.failed;
}

tg_status tg_nltk_list_add(tg_nltk_list *l, const char *word, size_t len, tg_error *err) {
    if (!room(l)) return tg_fail_nomem(err, l->n * sizeof *l->words);
    size_t at = l->bytes.len;
    tg_buf_append(&l->bytes, word, len);
    tg_buf_putc(&l->bytes, 0);
    if (l->bytes.failed) return tg_fail_nomem(err, len);
    l->words[l->n++] = (tg_nltk_word_span){at, len};
    return TG_OK;
}

/* str.split() of the rewritten sentence. */
static bool add_words(tg_nltk_list *l, const tg_points *t) {
    for (size_t i = 0; i < t->n;) {
        if (tg_py_space(t->c[i])) {
            i++;
            continue;
        }
        size_t start = i;
        while (i < t->n && !tg_py_space(t->c[i])) i++;
        if (!add_points(l, t->c + start, i - start)) return false;
    }
    return true;
}

static tg_status split_sentences(const tg_nltk *w, const char *text, size_t len, tg_nltk_list *out,
                                 tg_error *err) {
    tg_nltk_list_clear(out);
    if (!tg_points_read(&out->text, text, len)) return tg_fail_nomem(err, 4 * len);
    return tg_punkt_split(w->punkt, &out->text, &out->sentences, err);
}

tg_status tg_nltk_words(const tg_nltk *w, const char *text, size_t len, tg_nltk_list *out,
                        tg_error *err) {
    tg_status st = split_sentences(w, text, len, out, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < out->sentences.n; i++) {
        tg_span s = out->sentences.spans[i];
        size_t n = s.end - s.begin;
        bool ok = tg_points_reserve(&out->work[0], n + 1);
        if (ok) {
            memcpy(out->work[0].c, out->text.c + s.begin, n * sizeof *out->text.c);
            out->work[0].n = n;
            ok = tg_treebank(out->work, w->rules) && add_words(out, &out->work[0]);
        }
        if (!ok) return tg_fail_nomem(err, 4 * n);
    }
    return TG_OK;
}

tg_status tg_nltk_sentences(const tg_nltk *w, const char *text, size_t len, tg_nltk_list *out,
                            tg_error *err) {
    tg_status st = split_sentences(w, text, len, out, err);
    for (size_t i = 0; st == TG_OK && i < out->sentences.n; i++) {
        tg_span s = out->sentences.spans[i];
        if (!add_points(out, out->text.c + s.begin, s.end - s.begin))
            st = tg_fail_nomem(err, s.end - s.begin);
    }
    return st;
}

tg_status tg_nltk_list_lower(tg_nltk_list *l, tg_error *err) {
    bool ascii = true;
    for (size_t i = 0; i < l->bytes.len; i++) {
        unsigned char c = (unsigned char)l->bytes.data[i];
        ascii &= c < 0x80;
        if (c >= 'A' && c <= 'Z') l->bytes.data[i] = (char)(c + 32);
    }
    if (ascii) return TG_OK;
    /* Beyond ASCII a word may change its length. ASCII capitals do not decide how others fold,
     * except as cased letters before a sigma, which their lower case is too. */
    tg_buf out = {0};
    for (size_t i = 0; i < l->n; i++) {
        size_t at = out.len;
        tg_py_lower(&out, l->bytes.data + l->words[i].at, l->words[i].len);
        l->words[i] = (tg_nltk_word_span){at, out.len - at};
        tg_buf_putc(&out, 0);
    }
    tg_buf_fini(&l->bytes);
    l->bytes = out;
    return out.failed ? tg_fail_nomem(err, out.len) : TG_OK;
}
