/* Words by the splitter's name. */
#include "env-server/metric/splitter.h"

#include <string.h>

tg_status tg_splitter_open(tg_splitter *s, const char *name, bool compat, tg_error *err) {
    memset(s, 0, sizeof *s);
    if (!name) name = compat ? "spacy" : "none";
    if (!strcmp(name, "nltk"))
        return tg_nltk_create(&s->nltk, compat ? TG_NLTK_3_7 : TG_NLTK_CURRENT, err);
    if (!strcmp(name, "spacy"))
        return tg_spacy_create(&s->spacy, compat ? TG_SPACY_3_0 : TG_SPACY_CURRENT, err);
    return TG_OK;
}

void tg_splitter_close(tg_splitter *s) {
    tg_nltk_destroy(&s->nltk);
    tg_spacy_destroy(&s->spacy);
}

tg_status tg_splitter_words(const tg_splitter *s, tg_splitter_work *w, const char *text, size_t len,
                            tg_words *words, tg_wids *out, tg_error *err) {
    tg_status st = TG_OK;
    if (s->nltk) {
        st = tg_nltk_words(s->nltk, text, len, &w->list, err);
        if (st == TG_OK) st = tg_nltk_list_lower(&w->list, err);
    } else if (s->spacy) {
        st = tg_spacy_words(s->spacy, text, len, &w->spacy, &w->list, err);
    } else {
        tg_words_split(words, text, len, out);
    }
    for (size_t i = 0; st == TG_OK && (s->nltk || s->spacy) && i < w->list.n; i++)
        tg_wids_push(out, tg_words_id(words, tg_nltk_at(&w->list, i), w->list.words[i].len));
    if (st == TG_OK && (words->failed || out->failed)) st = tg_fail_nomem(err, len);
    return st;
}

void tg_splitter_work_fini(tg_splitter_work *w) {
    tg_nltk_list_fini(&w->list);
    tg_spacy_work_fini(&w->spacy);
}
