/* NLTK's NLTKWordTokenizer: the Penn Treebank rules, applied to one sentence one after the other. */
#ifndef TG_ENV_TREEBANK_H
#define TG_ENV_TREEBANK_H

#include "env-server/metric/punkt.h"

/* Rewrites work[0], which holds the sentence, so that spaces separate its words; work[1] is work
 * space. The result is in work[0]. False: out of memory. */
bool tg_treebank(tg_points work[2], tg_nltk_rules rules);

#endif
