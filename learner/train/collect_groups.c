/* Groups of samples whose reward ranks: from the last member's end to the rewards of all. A group's records follow one
 * another; its texts are those of the members that can be ranked. */
#include "learner/train/collect_impl.h"

#include "common/base/alloc.h"
#include "proto/codec.h"

#include <math.h>

/* Leaves out what was to be ranked of the group that starts at this record. */
static tg_status drop_group(tg_collector *c, int first, tg_reward_status status, const char *why,
                            tg_error *err) {
    tg_status st = TG_OK;
    c->dropped_groups++;
    for (int i = first; i < first + c->group && st == TG_OK; i++) {
        tg_record *rec = &c->records[i];
        if (!rec->text) continue;
        rec->ok = false;
        c->finished++;
        st = tg_collect_note_failure(c, c->first_episode + (uint64_t)i, status, why, err);
    }
    return st;
}

static tg_status ask_ranking(tg_collector *c, int first, int n, tg_error *err) {
    tg_status st = c->ranking ? TG_OK : tg_ranking_create(&c->ranking, c->pool, err);
    const char **texts = tg_alloc_array((size_t)n, sizeof *texts);
    if (st == TG_OK && !texts) st = tg_fail_nomem(err, (size_t)n * sizeof *texts);
    for (int i = first, k = 0; i < first + c->group && st == TG_OK; i++)
        if (c->records[i].text) texts[k++] = c->records[i].text;
    tg_ranking_group g = {
        .tag = (uint64_t)first, .sample = c->records[first].sample, .texts = texts, .n = (size_t)n};
    if (st == TG_OK) st = tg_ranking_ask(c->ranking, &g, err);
    if (st != TG_OK) tg_free(texts);
    c->records[first].group_texts = st == TG_OK ? texts : NULL;
    return st;
}

/* A member has arrived; the last one sets the ranking off. */
tg_status tg_collect_check_group(tg_collector *c, int member, tg_error *err) {
    int first = member - member % c->group, pending = 0;
    if (first + c->group > c->n_records) return TG_OK;
    for (int i = first; i < first + c->group; i++) {
        if (!c->records[i].arrived) return TG_OK;
        pending += c->records[i].text != NULL;
    }
    if (!pending) return TG_OK;
    if (pending < c->opts.min_valid)
        return drop_group(c, first, TG_REWARD_FAILED, "too few of its group can be ranked", err);
    return ask_ranking(c, first, pending, err);
}

/* Too few valid ones, and none of the group counts. */
static tg_status take_ranking(tg_collector *c, const tg_ranking_answer *a, tg_error *err) {
    int first = (int)a->tag, valid = 0;
    tg_free(c->records[first].group_texts);
    c->records[first].group_texts = NULL;
    if (a->status != TG_OK)
        return drop_group(c, first, a->status == TG_TIMEOUT ? TG_REWARD_TIMEOUT : TG_REWARD_FAILED,
                          a->error.msg, err);
    const tg_score_result *r = a->reply->items;
    for (size_t k = 0; k < a->reply->n; k++)
        valid += r[k].status == TG_REWARD_OK && isfinite(r[k].value);
    if (valid < c->opts.min_valid) {
        size_t k = 0;
        while (r[k].status == TG_REWARD_OK && isfinite(r[k].value)) k++;
        return drop_group(c, first, r[k].status, r[k].message, err);
    }
    tg_status st = TG_OK;
    for (int i = first; i < first + c->group && st == TG_OK; i++) {
        tg_record *rec = &c->records[i];
        if (!rec->text) continue;
        c->finished++;
        rec->ok = r->status == TG_REWARD_OK && isfinite(r->value);
        rec->rewards[rec->n_actions - 1] = r->value;
        if (!rec->ok)
            st = tg_collect_note_failure(c, c->first_episode + (uint64_t)i, r->status, r->message,
                                         err);
        r++;
    }
    return st;
}

tg_status tg_collect_take_rankings(tg_collector *c, int wait_ms, bool *any, tg_error *err) {
    tg_ranking_answer a;
    tg_status st = TG_OK;
    while (c->ranking && st == TG_OK && tg_ranking_take(c->ranking, &a, wait_ms)) {
        st = take_ranking(c, &a, err);
        tg_msg_free(a.reply);
        wait_ms = 0;
        *any = true;
    }
    return st;
}
