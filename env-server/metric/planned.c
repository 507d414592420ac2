/* Keys, types and defaults of RL4LMs's other metrics, so that every config of it is understood. A
 * row moves to a file of its own when the metric is built. */
#include "env-server/metric/rows.h"

#include <stdint.h>

/* One struct serves all tables: a table names the fields that its metric has. */
struct args {
    const char *model_name, *language, *config_name;
    const char *tokenizer_id, *model_type, *granularity, *op1, *op2, *bins, *nli_labels, *device;
    const char *start_file, *agg;
    const tg_node *models;
    int64_t label_ix, batch_size, stride, max_doc_sents;
    bool include_prompt_for_eval, use_text_from_meta_data;
    bool use_cache, use_ent, use_con, imager_load_cache, norm_histo;
};

#define REQUIRED(f, T, h) TG_OPT_ROW(struct args, f, T, TG_OPT_REQUIRED, NULL, 0, 0, NULL, h)

static const tg_opt summac_zs[] = {
    TG_OPT_STR(struct args, model_name, "mnli", "Entailment model."),
    TG_OPT_STR(struct args, granularity, "paragraph", "How texts are cut."),
    TG_OPT_STR_ONE_OF(struct args, op1, "max", "max|mean|min", "Over the document."),
    TG_OPT_STR_ONE_OF(struct args, op2, "mean", "max|mean|min", "Over the summary."),
    TG_OPT_BOOL(struct args, use_ent, "true", "Entailment counts."),
    TG_OPT_BOOL(struct args, use_con, "true", "Contradiction counts."),
    TG_OPT_BOOL(struct args, imager_load_cache, "true", "Keep scores of pairs."),
    TG_OPT_BOOL(struct args, use_cache, "true", "Use kept scores."),
    TG_OPT_INT(struct args, max_doc_sents, "100", 1, 1e9, "Longest document in sentences."),
    TG_OPT_END};
static const tg_opt summac_conv[] = {
    TG_OPT_NODE(struct args, models, "Entailment models; default mnli, anli, vitc."),
    TG_OPT_STR(struct args, bins, "even50", "Histogram bins."),
    TG_OPT_STR(struct args, granularity, "sentence", "How texts are cut."),
    TG_OPT_STR_ONE_OF(struct args, nli_labels, "e", "e|c|n|ec|en|cn|ecn", "Labels that count."),
    TG_OPT_STR(struct args, device, "cuda", "Device of the models."),
    TG_OPT_STR(struct args, start_file, NULL, "Trained heads."),
    TG_OPT_BOOL(struct args, imager_load_cache, "true", "Keep scores of pairs."),
    TG_OPT_STR(struct args, agg, "mean", "Over the summary."),
    TG_OPT_BOOL(struct args, norm_histo, "false", "Normalise histograms."),
    TG_OPT_BOOL(struct args, use_cache, "true", "Use kept scores."),
    TG_OPT_INT(struct args, max_doc_sents, "100", 1, 1e9, "Longest document in sentences."),
    TG_OPT_END};
static const tg_opt causal_perplexity[] = {
    REQUIRED(stride, TG_T_INT, "New tokens per window."),
    REQUIRED(tokenizer_id, TG_T_STR, "Tokenizer of the texts."),
    TG_OPT_STR(struct args, model_type, "causal", "Kind of the policy."),
    TG_OPT_BOOL(struct args, use_text_from_meta_data, "false", "Texts are meta's \"reference\"."),
    TG_OPT_END};

#define ROW(id, table, text)                                                                       \
    { .name = id, .summary = text, .options = table, .options_size = sizeof(struct args) }

const tg_entry tg_metric_planned[] = {
    ROW("summaCZS", summac_zs, "Consistency of a summary, zero-shot entailment."),
    ROW("summaCConv", summac_conv, "Consistency of a summary, trained on entailment histograms."),
    ROW("causal_perplexity", causal_perplexity, "Perplexity of the references under the policy."),
    {0},
};
