/* All data pools, and how one is opened and read. A new one is one file and one line here. */
#include "env-server/datapool/datapool.h"

#include "common/base/alloc.h"
#include "env-server/datapool/rows.h"

#include <string.h>

static const tg_entry *const built[] = {
    &tg_datapool_dummy.entry,         &tg_datapool_imdb.entry,
    &tg_datapool_imdb_seq2seq.entry,  &tg_datapool_commongen.entry,
    &tg_datapool_totto.entry,         &tg_datapool_cnn_daily_mail.entry,
    &tg_datapool_xsum.entry,          &tg_datapool_narrative_qa.entry,
    &tg_datapool_wmt16.entry,         &tg_datapool_wmt14_processed_en_de.entry,
    &tg_datapool_wmt16newsonly.entry, &tg_datapool_iwslt2017en_de.entry,
    &tg_datapool_crd3.entry,          &tg_datapool_daily_dialog.entry,
    &tg_datapool_tldr.entry,          &tg_datapool_tldr_preference.entry,
    &tg_datapool_jsonl.entry,         &tg_datapool_csv.entry,
    &tg_datapool_tsv.entry,           &tg_datapool_parquet.entry,
    &tg_datapool_text.entry,          NULL,
};

const tg_registry *tg_datapool_registry(void) {
    static const tg_entry none[] = {{0}};
    static const tg_registry registry = {"datapool", built, none};
    return &registry;
}

tg_status tg_datapool_open(tg_datapool *p, const tg_datapool_ops *ops, const void *options,
                           const tg_datapool_context *context, tg_split split, tg_error *err) {
    static const tg_datapool_context defaults = {0};
    memset(p, 0, sizeof *p);
    void *state = tg_alloc(ops->state_size);
    if (!state) return tg_fail_nomem(err, ops->state_size);
    uint64_t count = 0;
    tg_status st = ops->open(state, options, context ? context : &defaults, split, &count, err);
    if (st != TG_OK) {
        tg_free(state);
        return st;
    }
    *p = (tg_datapool){ops, state, count};
    return TG_OK;
}

void tg_datapool_close(tg_datapool *p) {
    if (!p->ops) return;
    if (p->ops->close) p->ops->close(p->state);
    tg_free(p->state);
    memset(p, 0, sizeof *p);
}

tg_status tg_datapool_get(const tg_datapool *p, uint64_t i, tg_arena *arena, tg_sample *out,
                          tg_error *err) {
    if (i >= p->count)
        return tg_fail(err, TG_DATA, "sample %llu does not exist: the split has %llu",
                       (unsigned long long)i, (unsigned long long)p->count);
    *out = (tg_sample){.index = i, .id = "", .prompt_text = "", .meta_json = ""};
    return p->ops->get(p->state, i, arena, out, err);
}

uint64_t tg_datapool_digest(const tg_datapool *p) {
    return p->ops && p->ops->digest ? p->ops->digest(p->state) : 0;
}
