/* Keys, types and defaults of the metrics of RL4LMs that are not built, so that a config which names them is understood and
 * refused by name: SummaC needs entailment models of families that the engine does not have (DeBERTa, XLNet), and heads
 * that were never published with RL4LMs. */
#include "env-server/metric/rows.h"

#include <stdint.h>

/* One struct serves all tables: a table names the fields that its metric has. */
struct args {
    const char *model_name, *granularity, *op1, *op2, *bins, *nli_labels, *device;
    const char *start_file, *agg;
    const tg_node *models;
    int64_t max_doc_sents;
    bool use_cache, use_ent, use_con, imager_load_cache, norm_histo;
};

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
#define ROW(id, table, text)                                                                       \
    { .name = id, .summary = text, .options = table, .options_size = sizeof(struct args) }

const tg_entry tg_metric_planned[] = {
    ROW("summaCZS", summac_zs, "Consistency of a summary, zero-shot entailment."),
    ROW("summaCConv", summac_conv, "Consistency of a summary, trained on entailment histograms."),
    {0},
};
