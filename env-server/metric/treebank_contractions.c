/* Contractions such as cannot, each cut into its two words. */
#include "env-server/metric/treebank_impl.h"

#include "env-server/metric/pystr.h"

const tg_treebank_contraction tg_treebank_contractions[TG_TREEBANK_CONTRACTIONS] = {
    {"cannot", 3, 'b'}, {"d'ye", 1, 'b'},   {"gimme", 3, 'b'}, {"gonna", 3, 'b'}, {"gotta", 3, 'b'},
    {"lemme", 3, 'b'},  {"more'n", 4, 'b'}, {"wanna", 3, 's'}, {"'tis", 2, 't'},  {"'twas", 2, 't'},
};

/* These expressions are run by re in either version. */
static bool is_contraction(const tg_treebank_pass *p, size_t i, const tg_treebank_contraction *k) {
    const uint32_t *c = p->c;
    size_t at = k->kind == 't' ? i + 1 : i, end = at + strlen(k->word);
    if (end > p->n || !tg_treebank_matches(c + at, p->n - at, k->word)) return false;
    if (k->kind == 't') return c[i] == ' ' && tg_treebank_is_boundary(c, p->n, end, TG_NLTK_3_7);
    if (!tg_treebank_is_boundary(c, p->n, i, TG_NLTK_3_7)) return false;
    return k->kind == 's' ? end < p->n && tg_py_space(c[end])
                          : tg_treebank_is_boundary(c, p->n, end, TG_NLTK_3_7);
}

void tg_treebank_split_contraction(tg_treebank_pass *p, const tg_treebank_contraction *k) {
    for (size_t i = 0; i < p->n; i++) {
        if (!is_contraction(p, i, k)) {
            tg_treebank_put(p, p->c[i]);
            continue;
        }
        size_t len = strlen(k->word);
        i += k->kind == 't';
        tg_treebank_put(p, ' ');
        for (size_t j = 0; j < len; j++) {
            if (j == k->first) tg_treebank_put(p, ' ');
            tg_treebank_put(p, p->c[i + j]);
        }
        tg_treebank_put(p, ' ');
        i += len - 1;
    }
}
