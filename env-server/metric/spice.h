/* SPICE (Anderson et al. 2016): the F measure over the propositions of two scene graphs.
 *
 * The graph's rules (which phrases become objects, attributes and relations, what is merged by WordNet synset, how
 * propositions are counted) are those of the original. The sentences are read by this project's own shallow parser on
 * WordNet's word classes, not by Stanford's: scores of single texts differ from the original's.
 *
 * Read-only after create: any number of threads, each with its own scene. */
#ifndef TG_ENV_SPICE_H
#define TG_ENV_SPICE_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "env-server/metric/metric.h"
#include "env-server/metric/splitter.h"
#include "env-server/metric/wordnet.h"
#include "proto/messages.h"

/* ---- propositions of a text -------------------------------------------------------------------- */

typedef enum tg_spice_tag {
    TG_SPICE_OTHER,
    TG_SPICE_DET,
    TG_SPICE_OWNER,      /* his, their */
    TG_SPICE_POSSESSIVE, /* 's */
    TG_SPICE_PRONOUN,
    TG_SPICE_NUMBER,
    TG_SPICE_ADJ,
    TG_SPICE_NOUN,
    TG_SPICE_ADVERB,
    TG_SPICE_PREP,
    TG_SPICE_AND,
    TG_SPICE_RELATIVE, /* that, which, who */
    TG_SPICE_THERE,
    TG_SPICE_BE,
    TG_SPICE_AUX,    /* has, do, can */
    TG_SPICE_VERB,   /* finite, or behind an auxiliary */
    TG_SPICE_GERUND, /* riding, ridden: without an auxiliary it belongs to a noun */
    TG_SPICE_STOP    /* ends a clause */
} tg_spice_tag;

typedef struct tg_spice_word {
    const char *text, *lemma; /* lower case */
    tg_spice_tag tag;
    bool plural;  /* of a noun */
    bool being;   /* of a noun: a person or an animal */
    bool passive; /* of a verb */
} tg_spice_word;

/* An object, an object with an attribute, or two objects and their relation. */
typedef struct tg_spice_tuple {
    const char *part[3]; /* object; attribute or second object; relation. NULL: not there */
} tg_spice_tuple;

typedef struct tg_spice_tuples {
    tg_arena *arena; /* set by the caller: owns the texts */
    tg_spice_tuple *v;
    size_t n, cap;
    bool failed;
} tg_spice_tuples;

/* Gives every word its class and base form. words: text set, in the arena. */
tg_status tg_spice_tag_words(const tg_wordnet *w, tg_spice_word *words, size_t n, tg_arena *arena,
                             tg_error *err) TG_MUST_CHECK;
/* Appends the propositions of tagged words. */
void tg_spice_parse(const tg_wordnet *w, const tg_spice_word *words, size_t n,
                    tg_spice_tuples *out);

/* ---- scores ------------------------------------------------------------------------------------- */

typedef struct tg_spice {
    tg_splitter splitter;
    tg_wordnet *wordnet;
} tg_spice;

tg_status tg_spice_open(tg_spice *s, bool compat, tg_error *err) TG_MUST_CHECK;
void tg_spice_close(tg_spice *s);

typedef struct tg_spice_score {
    size_t matched, test, ref; /* propositions */
    double precision, recall, f;
} tg_spice_score;

/* Propositions of a text, appended; the arena is the list's. */
tg_status tg_spice_read(const tg_spice *s, const char *text, size_t len, tg_spice_tuples *out,
                        tg_error *err) TG_MUST_CHECK;
/* Builds both graphs and compares them. */
tg_status tg_spice_compare(const tg_spice *s, const tg_spice_tuples *test,
                           const tg_spice_tuples *ref, tg_spice_score *out,
                           tg_error *err) TG_MUST_CHECK;
/* The text against all references of its sample, which make one graph. */
tg_status tg_spice_sample(const tg_spice *s, const char *text, size_t len, const tg_sample *sample,
                          tg_spice_score *out, tg_error *err) TG_MUST_CHECK;

/* F of every item and its mean; together: samples of one prompt are one (see tg_by_prompt). */
tg_status tg_spice_corpus(const tg_spice *s, const tg_metric_input *in, bool together, double *out,
                          double *mean, tg_error *err) TG_MUST_CHECK;

#endif
