/* Keys, types and defaults of RL4LMs's other data pools, so that every config of it is understood.
 * A row moves to a file of its own when the pool is built. */
#include "env-server/datapool/rows.h"

#include <stdint.h>

/* One struct serves all tables: a table names the fields that its pool has. */
struct args {
    const char *concept_separator_token, *concept_end_token, *prefix, *representation;
    const char *prompt_prefix, *prompt_suffix, *wmt_id, *source_language, *target_language;
    int64_t seed, truncate_article, max_size, max_context_size, context_size;
    double positive_ratio;
};

#define REQUIRED(f, T, h) TG_OPT_ROW(struct args, f, T, TG_OPT_REQUIRED, NULL, 0, 0, NULL, h)
#define NULLABLE_INT(f, h)                                                                         \
    TG_OPT_ROW(struct args, f, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 1e15, NULL, h)
#define PREFIX TG_OPT_STR(struct args, prompt_prefix, "", "Text before the prompt.")
#define SUFFIX TG_OPT_STR(struct args, prompt_suffix, "", "Text behind the prompt.")

static const tg_opt no_options[] = {TG_OPT_END};
/* RL4LMs fails without a seed, though one of its configs leaves it out: then the run's seed counts. */
static const tg_opt imdb[] = {NULLABLE_INT(seed, "Seed of the shuffle; unset: the run's seed."),
                              TG_OPT_END};
static const tg_opt imdb_seq2seq[] = {TG_OPT_FLOAT(struct args, positive_ratio, "1.0", 0, 1,
                                                   "Share of the positive reviews to keep."),
                                      TG_OPT_END};
static const tg_opt commongen[] = {
    TG_OPT_STR(struct args, concept_separator_token, " ", "Between two concepts."),
    TG_OPT_STR(struct args, concept_end_token, " ", "Behind the last concept."),
    TG_OPT_STR(struct args, prefix, "summarize: ", "Before the first concept."), TG_OPT_END};
static const tg_opt totto[] = {TG_OPT_STR_ONE_OF(struct args, representation, "subtable",
                                                 "subtable|fulltable",
                                                 "What of the table is shown."),
                               TG_OPT_END};
static const tg_opt cnn_daily_mail[] = {
    SUFFIX, PREFIX, NULLABLE_INT(truncate_article, "Keep this many words of an article."),
    NULLABLE_INT(max_size, "Stop after this many samples; 0: all."), TG_OPT_END};
static const tg_opt wmt16[] = {REQUIRED(wmt_id, TG_T_STR, "Name of the data set."),
                               REQUIRED(source_language, TG_T_STR, "Language of the prompt."),
                               REQUIRED(target_language, TG_T_STR, "Language of the reference."),
                               SUFFIX,
                               PREFIX,
                               TG_OPT_END};
static const tg_opt affixes[] = {SUFFIX, PREFIX, TG_OPT_END};
static const tg_opt crd3[] = {REQUIRED(max_context_size, TG_T_INT, "Turns shown; 0: all."),
                              TG_OPT_END};
static const tg_opt daily_dialog[] = {REQUIRED(context_size, TG_T_INT, "Utterances shown; 0: all."),
                                      TG_OPT_END};

#define ROW(id, table, text)                                                                       \
    { .name = id, .summary = text, .options = table, .options_size = sizeof(struct args) }

const tg_entry tg_datapool_planned[] = {
    ROW("imdb", imdb, "IMDB reviews: continue the first half."),
    ROW("imdb_seq2seq", imdb_seq2seq, "IMDB reviews in two halves, for supervised training."),
    ROW("commongen", commongen, "CommonGen: a sentence with given concepts."),
    ROW("totto", totto, "ToTTo: a sentence about highlighted table cells."),
    ROW("cnn_daily_mail", cnn_daily_mail, "CNN/DailyMail: summarise a news article."),
    ROW("narrative_qa", no_options, "NarrativeQA: answer a question about a story."),
    ROW("wmt16", wmt16, "WMT translation of any language pair."),
    ROW("wmt14_processed_en_de", affixes, "WMT 14, English to German, pre-processed."),
    ROW("wmt16newsonly", affixes, "WMT 16, English to German, news only."),
    ROW("iwslt2017en_de", affixes, "IWSLT 2017, English to German."),
    ROW("crd3", crd3, "CRD3: the next turn of a role-playing session."),
    ROW("daily_dialog", daily_dialog, "DailyDialog: the next utterance."),
    {0},
};
