/* The metric rouge_l_max: mean over the samples of the best F over the references. After open a state is
 * read-only. */
#include "common/base/alloc.h"
#include "env-server/metric/items.h"
#include "env-server/metric/pyrouge.h"
#include "env-server/metric/rows.h"

#define S tg_pyrouge_options
const tg_opt tg_pyrouge_table[] = {
    TG_OPT_ROW(S, max_n, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 0, NULL,
               "Longest n-gram of the ROUGE-N that py-rouge has beside; no effect on ROUGE-L."),
    TG_OPT_BOOL(S, limit_length, "true", "Cut summaries at length_limit."),
    TG_OPT_INT(S, length_limit, "665", 0, 1e9, "Where summaries are cut; 0: nowhere."),
    TG_OPT_STR_ONE_OF(S, length_limit_type, "bytes", "bytes|words",
                      "Unit of length_limit; bytes are characters."),
    TG_OPT_ROW(S, apply_avg, TG_T_BOOL, TG_OPT_IGNORED, "true", 0, 0, NULL,
               "No effect: one reference is scored at a time."),
    TG_OPT_UNUSED(S, apply_best, "No effect: one reference is scored at a time."),
    TG_OPT_BOOL(S, stemming, "true", "Compare base forms."),
    TG_OPT_FLOAT(S, alpha, "0.5", 0, 1, "Weight of recall in F."),
    TG_OPT_FLOAT(S, weight_factor, "1.0", 1e-6, 1e6,
                 "Precision and recall are raised to 1 / weight_factor."),
    TG_OPT_BOOL(S, ensure_compatibility, "true",
                "Sentences and stems as in the original Perl script."),
    TG_OPT_END};
#undef S

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)ctx;
    *(tg_pyrouge_options *)state = *(const tg_pyrouge_options *)opts;
    return tg_pyrouge_check(opts, err);
}

static tg_status start(void *work, const void *state, tg_error *err) {
    return tg_pyrouge_create(work, state, err);
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    (void)state;
    return tg_pyrouge_best(*(tg_pyrouge **)work, item->text, item->text_len, item->sample, out,
                           err);
}

static void end(void *work) {
    tg_pyrouge_destroy(work);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_pyrouge *), sizeof(double), start, one, end};
    tg_status st = tg_items_need_references(in, err);
    return st == TG_OK ? tg_items_mean(in, &loop, state, "lexical/rouge_l_max", true, out, err)
                       : st;
}

const tg_metric_ops tg_metric_rouge_l_max = {
    .entry = {.name = "rouge_l_max",
              .summary = "Best ROUGE-L F over the references, as py-rouge computes it.",
              .options = tg_pyrouge_table,
              .options_size = sizeof(tg_pyrouge_options),
              .built = true},
    .state_size = sizeof(tg_pyrouge_options),
    .open = open_metric,
    .compute = compute,
};
