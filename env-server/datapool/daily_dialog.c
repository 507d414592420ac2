/* DailyDialog: the next utterance. The last context_size utterances, joined by "<EOU>", are the
 * prompt; ids count all utterances of the split. */
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/dialog_lines.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
    tg_pool_common common;
    int64_t context_size;
};
static const tg_opt options[] = {TG_OPT_ROW(struct options, context_size, TG_T_INT, TG_OPT_REQUIRED,
                                            NULL, -1e9, 1e9, NULL,
                                            "Earlier utterances shown; 0: all."),
                                 TG_POOL_OPTIONS(struct options), TG_OPT_END};

static tg_status native(const tg_place *place, tg_table *out, tg_error *err) {
    return place->is_file ? TG_OK : tg_dialog_lines_open(place->root, place->split, out, err);
}

static const tg_dataset dataset = {
    .title = "DailyDialog",
    .names = {"ijcnlp_dailydialog", "daily_dialog", "dailydialog"},
    .hub = {"li2017dailydialog/daily_dialog", "daily_dialog"},
    .layout =
        "{train,validation,test}/dialogues_{train,validation,test}.txt with dialogues_act_…txt and "
        "dialogues_emotion_…txt, or .jsonl, .csv or .parquet with dialog, act and emotion;",
    .native = native,
};

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    const struct options *o = p->options;
    const json_t *dialog = tg_row_texts(row, "dialog", err);
    const json_t *act = dialog ? tg_row_field(row, "act", err) : NULL;
    const json_t *emotion = act ? tg_row_field(row, "emotion", err) : NULL;
    if (!emotion) return TG_DATA;
    size_t n = json_array_size(dialog);
    if (!json_is_array(act) || !json_is_array(emotion) || json_array_size(act) != n ||
        json_array_size(emotion) != n)
        return tg_fail(err, TG_DATA, "%zu utterances, but %zu acts and %zu emotions", n,
                       json_array_size(act), json_array_size(emotion));
    int64_t value;
    for (size_t i = 0; i < n; i++)
        if (!tg_value_int(json_array_get(act, i), "act", &value, err) ||
            !tg_value_int(json_array_get(emotion, i), "emotion", &value, err))
            return TG_DATA;
    uint64_t before = o->context_size > 0 ? (uint64_t)o->context_size : 0;
    info->samples = n > before ? n - before : 0;
    info->advance = n;
    return TG_OK;
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    const struct options *o = p->options;
    const json_t *row = picked->rows[0], *dialog = json_object_get(row, "dialog");
    int64_t size = o->context_size, at = (int64_t)picked->sub + (size > 0 ? size : 0);
    int64_t from = size > 0 ? at - size : (-size < at ? -size : at); /* contexts[-size:] */
    tg_buf prompt = {0}, target = {0};
    for (int64_t i = from; i < at; i++) {
        if (i > from) tg_buf_puts(&prompt, "<EOU>");
        tg_buf_puts(&prompt, json_string_value(json_array_get(dialog, (size_t)i)));
    }
    tg_buf_puts(&prompt, " <EOU>");
    tg_buf_printf(&target, "%s<EOU>", json_string_value(json_array_get(dialog, (size_t)at)));
    tg_status st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK && target.failed) st = tg_fail_nomem(err, target.len);
    if (st == TG_OK) st = tg_sample_only(out, target.data, arena, err);
    tg_buf_fini(&target);
    char id[24];
    snprintf(id, sizeof id, "%" PRIu64, picked->number + (uint64_t)at);
    if (st == TG_OK && !(out->id = tg_arena_strdup(arena, id))) st = tg_fail_nomem(err, sizeof id);
    int64_t act = 0, emotion = 0;
    if (st == TG_OK &&
        (!tg_value_int(json_array_get(json_object_get(row, "act"), (size_t)at), "act", &act, err) ||
         !tg_value_int(json_array_get(json_object_get(row, "emotion"), (size_t)at), "emotion",
                       &emotion, err)))
        st = TG_DATA;
    if (st == TG_OK)
        st = tg_sample_meta(
            out,
            json_pack("{s:[I], s:[I]}", "emotion", (json_int_t)emotion, "intent", (json_int_t)act),
            arena, err);
    return st;
}

static tg_status open_pool(void *state, const void *opts, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const structured[] = {"dialog", "act", "emotion", NULL};
    static const tg_recipe recipe = {
        .structured = structured, .inspect = inspect, .must_inspect = true, .make = make};
    const struct options *o = opts;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &dataset, split, structured, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_daily_dialog = {
    .entry = {.name = "daily_dialog",
              .summary = "DailyDialog: the next utterance.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .integer_ids = true,
    .open = open_pool,
    TG_ROWPOOL_OPS,
};
