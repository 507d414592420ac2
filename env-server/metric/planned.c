/* Keys, types and defaults of RL4LMs's other metrics, so that every config of it is understood. A
 * row moves to a file of its own when the metric is built. */
#include "env-server/metric/rows.h"

#include <stdint.h>

/* One struct serves all tables: a table names the fields that its metric has. */
struct args {
    const char *model_name, *language, *config_name, *tokenize, *smooth_method, *length_limit_type;
    const char *tokenizer_id, *model_type, *granularity, *op1, *op2, *bins, *nli_labels, *device;
    const char *start_file, *agg;
    const tg_node *apply_best, *models;
    int64_t label_ix, batch_size, max_n, length_limit, stride, max_doc_sents;
    double smooth_value, alpha, weight_factor;
    bool include_prompt_for_eval, force, lowercase, use_effective_order;
    bool limit_length, apply_avg, stemming, ensure_compatibility, use_text_from_meta_data;
    bool use_cache, use_ent, use_con, imager_load_cache, norm_histo;
};

#define REQUIRED(f, T, h) TG_OPT_ROW(struct args, f, T, TG_OPT_REQUIRED, NULL, 0, 0, NULL, h)

static const tg_opt no_options[] = {TG_OPT_END};
static const tg_opt learned_reward[] = {
    REQUIRED(model_name, TG_T_STR, "Sequence classifier, as a folder or a name."),
    REQUIRED(label_ix, TG_T_INT, "Label whose probability is the value."),
    REQUIRED(batch_size, TG_T_INT, "Texts per forward pass."),
    TG_OPT_BOOL(struct args, include_prompt_for_eval, "true", "Classify the prompt with the text."),
    TG_OPT_END};
static const tg_opt bert_score[] = {
    REQUIRED(language, TG_T_STR, "Language, which decides the model."), TG_OPT_END};
static const tg_opt bleurt[] = {TG_OPT_STR(struct args, config_name, NULL, "BLEURT checkpoint."),
                                TG_OPT_END};
static const tg_opt sacre_bleu[] = {
    TG_OPT_STR(struct args, tokenize, NULL, "Tokeniser: none, 13a, intl, char or zh."),
    TG_OPT_STR(struct args, smooth_method, "exp", "Smoothing: exp, floor, add-k or none."),
    TG_OPT_ROW(struct args, smooth_value, TG_T_FLOAT, TG_OPT_NULLABLE, NULL, 0, 0, NULL,
               "Value of floor and add-k smoothing."),
    TG_OPT_BOOL(struct args, force, "false", "Do not warn about tokenised input."),
    TG_OPT_BOOL(struct args, lowercase, "false", "Ignore case."),
    TG_OPT_BOOL(struct args, use_effective_order, "false",
                "Stop at the longest order that occurs."),
    TG_OPT_END};
static const tg_opt rouge_l_max[] = {
    TG_OPT_ROW(struct args, max_n, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 0, NULL, "Longest n-gram."),
    TG_OPT_BOOL(struct args, limit_length, "true", "Cut summaries at length_limit."),
    TG_OPT_INT(struct args, length_limit, "665", 0, 1e9, "Where summaries are cut."),
    TG_OPT_STR_ONE_OF(struct args, length_limit_type, "bytes", "bytes|words",
                      "Unit of length_limit."),
    TG_OPT_BOOL(struct args, apply_avg, "true", "Average over references."),
    TG_OPT_NODE(struct args, apply_best,
                "Best over references; any value that is not empty is true."),
    TG_OPT_BOOL(struct args, stemming, "true", "Compare stems."),
    TG_OPT_FLOAT(struct args, alpha, "0.5", 0, 1, "Weight of recall in F."),
    TG_OPT_FLOAT(struct args, weight_factor, "1.0", 0, 1e6, "Exponent of precision and recall."),
    TG_OPT_BOOL(struct args, ensure_compatibility, "true", "Stem as the original Perl script."),
    TG_OPT_END};
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
    ROW("learned_reward", learned_reward, "Probability of a label under a sequence classifier."),
    ROW("bert_score", bert_score, "BERTScore F1 against the references."),
    ROW("bleu", no_options, "Corpus BLEU-4 on words between spaces."),
    ROW("bleurt", bleurt, "BLEURT against the references."),
    ROW("sacre_bleu", sacre_bleu, "SacreBLEU, between 0 and 1."),
    ROW("ter", no_options, "Translation edit rate."),
    ROW("chrf", no_options, "chrF, between 0 and 1."),
    ROW("rouge_l_max", rouge_l_max, "Best ROUGE-L F over the references, as py-rouge computes it."),
    ROW("spice", no_options, "SPICE."),
    ROW("summaCZS", summac_zs, "Consistency of a summary, zero-shot entailment."),
    ROW("summaCConv", summac_conv, "Consistency of a summary, trained on entailment histograms."),
    ROW("causal_perplexity", causal_perplexity, "Perplexity of the references under the policy."),
    ROW("intent_accuracy", no_options, "Share of texts with the wanted dialogue intent."),
    {0},
};
