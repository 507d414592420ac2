/* The registry of trackers and the hub that hands events to them. */
#include "learner/track/track.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

enum { MAX_TRACKERS = 8 };

struct tg_track {
    tg_track_run run;
    void *state[MAX_TRACKERS];
    int n;
};

/* Files first: what follows may read them. */
const tg_tracker_ops *const *tg_tracker_list(void) {
    static const tg_tracker_ops *const all[] = {&tgi_track_jsonl, &tgi_track_svg,
                                                &tgi_track_progress, &tgi_track_results, NULL};
    return all;
}

tg_status tg_track_open(tg_track **out, const tg_track_run *run, tg_error *err) {
    tg_track *t = tg_alloc(sizeof *t);
    if (!t) return tg_fail_nomem(err, sizeof *t);
    t->run = *run;
    for (const tg_tracker_ops *const *o = tg_tracker_list(); *o; o++) {
        TG_ASSERT(t->n < MAX_TRACKERS);
        tg_status st = (*o)->open(&t->state[t->n], &t->run, err);
        if (st != TG_OK) {
            tg_track_close(&t);
            return st;
        }
        t->n++;
    }
    *out = t;
    return TG_OK;
}

tg_status tg_track_send(tg_track *t, const tg_track_event *event, tg_error *err) {
    const tg_tracker_ops *const *all = tg_tracker_list();
    for (int i = 0; i < t->n; i++) {
        /* NOLINTNEXTLINE: t->n trackers of the list were opened */
        tg_status st = all[i]->send(t->state[i], event, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

void tg_track_close(tg_track **t) {
    if (!*t) return;
    /* NOLINTNEXTLINE: as in tg_track_send */
    for (int i = 0; i < (*t)->n; i++) tg_tracker_list()[i]->close((*t)->state[i]);
    tg_free(*t);
    *t = NULL;
}
