/* What is known of a word as one part of speech: its base form, how often it occurs, the field of its first sense. */
#include "env-server/metric/wordnet_impl.h"

#include <string.h>

/* Sum over the lines "lemma%type:… number count" of one lemma; they are sorted. */
static unsigned frequency_of(const tg_wordnet *w, size_t pos, const char *lemma, size_t len) {
    static const char *const types[TG_WORDNET_N_POS] = {"1", "2", "35", "4"};
    const tg_filemap *m = &w->counts;
    size_t low = 0, high = m->len, sum = 0;
    while (low < high) { /* the first line that is not before "lemma%" */
        size_t middle = low + (high - low) / 2, at = middle;
        while (at > low && m->data[at - 1] != '\n') at--;
        size_t end = tg_wordnet_line_end(m, at), n = end - at < len ? end - at : len;
        int order = memcmp(m->data + at, lemma, n);
        if (!order) order = n < len ? -1 : end - at == n ? -1 : (int)m->data[at + n] - '%';
        if (order < 0)
            low = end + 1;
        else
            high = at;
    }
    for (size_t end; low + len + 2 < m->len; low = end + 1) {
        end = tg_wordnet_line_end(m, low);
        if (memcmp(m->data + low, lemma, len) != 0 || m->data[low + len] != '%') break;
        size_t at = low, count;
        bool ours = strchr(types[pos], m->data[low + len + 1]) != NULL;
        if (ours && tg_wordnet_skip_words(m, &at, end, 2) &&
            tg_wordnet_number_at(m, &at, end, 10, &count))
            sum += count;
    }
    return sum < 1000000 ? (unsigned)sum : 1000000;
}

/* Reads the first sense's field; false: the form is not in the database. */
static bool read_form(const tg_wordnet *w, size_t pos, const char *form, size_t len,
                      tg_wordnet_entry *out) {
    const tg_wordnet_table *t = &w->index[pos];
    size_t at, end, n_pointers, offset, field;
    if (len >= sizeof out->lemma || !tg_wordnet_find(t, form, len, &at, &end)) return false;
    memcpy(out->lemma, form, len);
    out->lemma[len] = 0;
    out->frequency = frequency_of(w, pos, form, len);
    out->field = 0;
    if (!tg_wordnet_skip_words(&t->map, &at, end, 3) ||
        !tg_wordnet_number_at(&t->map, &at, end, 10, &n_pointers) ||
        !tg_wordnet_skip_words(&t->map, &at, end, n_pointers + 2) ||
        !tg_wordnet_number_at(&t->map, &at, end, 10, &offset) || offset >= w->data[pos].len)
        return true;
    const tg_filemap *m = &w->data[pos];
    end = tg_wordnet_line_end(m, offset);
    if (tg_wordnet_skip_words(m, &offset, end, 1) &&
        tg_wordnet_number_at(m, &offset, end, 10, &field) && field < 64)
        out->field = (unsigned)field;
    return true;
}

bool tg_wordnet_look_up(const tg_wordnet *w, tg_wordnet_pos pos, const char *word, size_t len,
                        tg_wordnet_entry *out) {
    if (len == 0 || len > TG_WORDNET_MAX_WORD) return false;
    tg_wordnet_forms f = {.n = 0};
    out->inflected = true;
    bool irregular = tg_wordnet_irregular_forms(w, pos, word, len, &f);
    for (size_t i = 0; i < f.n; i++)
        if (read_form(w, pos, f.text[i], f.len[i], out)) return true;
    out->inflected = false;
    if (read_form(w, pos, word, len, out)) return true;
    out->inflected = true;
    if (!irregular) tg_wordnet_inflect(word, len, pos, &f);
    for (size_t i = 0; i < f.n; i++)
        if (f.len[i] && read_form(w, pos, f.text[i], f.len[i], out)) return true;
    return false;
}
