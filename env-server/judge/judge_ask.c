/* Questions to judges, from any thread. Those that come while a pass is running wait, and the next one to go takes all of its judge's along: the
 * rewards of many slots become one pass, and nobody waits for company. */
#include "env-server/judge/judge_impl.h"

#include "common/base/alloc.h"
#include "common/nn/perplexity.h"

#include <string.h>

/* Floats of an answer. */
static size_t answer_size(const tg_judge *j, const tg_question *q) {
    if (j->kind == TG_JUDGE_STATES) return q->rows->start[q->rows->n] * (size_t)j->arch.width;
    return q->rows->n * (j->kind == TG_JUDGE_ANSWER ? q->n_ids : (size_t)j->arch.n_labels);
}

/* The rows of all questions, one behind the other, in arrays of its own. */
typedef struct merged {
    tg_encodings rows;
    float *out;
} merged;

static void merged_fini(merged *m) {
    tg_free(m->rows.start);
    tg_free(m->rows.ids);
    tg_free(m->rows.types);
    tg_free(m->out);
}

static tg_status merge(const tg_judge *j, const tg_question *list, merged *m, tg_error *err) {
    size_t n = 0, tokens = 0, floats = 0;
    for (const tg_question *q = list; q; q = q->next)
        n += q->rows->n, tokens += q->rows->start[q->rows->n], floats += answer_size(j, q);
    *m = (merged){.rows = {.start = tg_alloc_array(n + 1, sizeof *m->rows.start),
                           .ids = tg_alloc_array(tokens, sizeof *m->rows.ids),
                           .types = tg_alloc_array(tokens, sizeof *m->rows.types)},
                  .out = tg_alloc_array(floats, sizeof *m->out)};
    if (!m->rows.start || !m->rows.ids || !m->rows.types || !m->out) {
        merged_fini(m);
        return tg_fail_nomem(err, tokens * sizeof *m->rows.ids + floats * sizeof *m->out);
    }
    m->rows.start[0] = 0;
    for (const tg_question *q = list; q; q = q->next) {
        size_t at = m->rows.start[m->rows.n], more = q->rows->start[q->rows->n];
        memcpy(m->rows.ids + at, q->rows->ids, more * sizeof *m->rows.ids);
        memcpy(m->rows.types + at, q->rows->types, more * sizeof *m->rows.types);
        for (size_t i = 1; i <= q->rows->n; i++)
            m->rows.start[m->rows.n + i] = at + q->rows->start[i];
        m->rows.n += q->rows->n;
    }
    return TG_OK;
}

static tg_status serve_together(tg_judge *j, tg_question *list, tg_error *err) {
    merged m;
    tg_status st = merge(j, list, &m, err);
    if (st != TG_OK) return st;
    st = tg_judge_run(j, &m.rows, list, m.out, err);
    size_t at = 0;
    for (tg_question *q = list; q && st == TG_OK; q = q->next) {
        memcpy(q->out, m.out + at, answer_size(j, q) * sizeof *q->out);
        at += answer_size(j, q);
        q->status = TG_OK;
    }
    merged_fini(&m);
    return st;
}

/* One text that cannot be judged must not spoil the others': then each question stands for itself. */
static void serve(tg_judge *j, tg_question *list) {
    tg_error why = {0};
    tg_status loaded = tg_judge_load(j, &why);
    if (loaded == TG_OK && list->next && serve_together(j, list, &why) == TG_OK) return;
    for (tg_question *q = list; q; q = q->next) {
        if (loaded == TG_OK)
            q->status = tg_judge_run(j, q->rows, q, q->out, &q->error);
        else
            q->status = loaded, q->error = why;
    }
}

/* With the lock held, the home becomes ours. */
static void take_home(tg_judges *home) {
    while (home->busy) pthread_cond_wait(&home->freed, &home->lock);
    home->busy = true;
}

static void leave_home(tg_judges *home) {
    home->busy = false;
    pthread_cond_broadcast(&home->freed);
}

static tg_status ask(tg_judge *j, tg_question *q, tg_error *err) {
    tg_judges *home = j->home;
    if (!q->rows->n) return TG_OK;
    pthread_mutex_lock(&home->lock);
    q->next = j->waiting;
    j->waiting = q;
    while (home->busy && !q->answered) pthread_cond_wait(&home->freed, &home->lock);
    if (!q->answered) {
        tg_question *list = j->waiting;
        j->waiting = NULL;
        home->busy = true;
        pthread_mutex_unlock(&home->lock);
        serve(j, list);
        pthread_mutex_lock(&home->lock);
        for (tg_question *next; list; list = next) { /* who is answered may be gone at once */
            next = list->next;
            list->answered = true;
        }
        leave_home(home);
    }
    pthread_mutex_unlock(&home->lock);
    if (q->status != TG_OK && err) *err = q->error;
    return q->status;
}

tg_status tg_judge_labels(tg_judge *j, const tg_encodings *rows, float *logits, tg_error *err) {
    return ask(j, &(tg_question){.rows = rows, .out = logits}, err);
}

tg_status tg_judge_states(tg_judge *j, const tg_encodings *rows, float *states, tg_error *err) {
    return ask(j, &(tg_question){.rows = rows, .out = states}, err);
}

tg_status tg_judge_answers(tg_judge *j, const tg_encodings *rows, const int32_t *ids, size_t n_ids,
                           float *logits, tg_error *err) {
    return ask(j, &(tg_question){.rows = rows, .ids = ids, .n_ids = n_ids, .out = logits}, err);
}

tg_status tg_judge_perplexity(tg_judge *j, const int32_t *tokens, size_t n, int stride, double *out,
                              tg_error *err) {
    tg_judges *home = j->home;
    pthread_mutex_lock(&home->lock);
    take_home(home);
    pthread_mutex_unlock(&home->lock);
    tg_status st = tg_judge_load(j, err);
    if (st == TG_OK)
        st = tg_perplexity(j->model, tokens, n, (tg_perplexity_opts){.stride = stride}, out, err);
    pthread_mutex_lock(&home->lock);
    leave_home(home);
    pthread_mutex_unlock(&home->lock);
    return st;
}
