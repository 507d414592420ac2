/* replay-metrics: recordings of RL4LMs's own metrics, rewards and batched rewards against ours under
 * `compat: rl4lms`.
 *
 *   replay-metrics DIR        DIR holds metrics.json (its layout: see main)
 *
 * What is not built is listed as skipped. Exit code 0 when everything that was compared agrees. */
#include "tests/support/scoring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 512, MAX_SKIPS = 128 };

typedef struct replay {
    json_t *root;
    size_t passed, failed, shown;
    const char *skipped[MAX_SKIPS]; /* labels, each once */
    size_t skips[MAX_SKIPS], n_skipped;
} replay;

static const json_t *at(const json_t *o, const char *key) {
    return json_object_get(o, key);
}
static const char *text_of(const json_t *o, const char *key) {
    return json_string_value(at(o, key));
}

static void skip(replay *r, const char *label, size_t cases) {
    size_t i = 0;
    while (i < r->n_skipped && strcmp(r->skipped[i], label) != 0) i++;
    if (i == MAX_SKIPS) return;
    if (i == r->n_skipped) r->skipped[r->n_skipped++] = label;
    r->skips[i] += cases;
}

static bool note(replay *r, bool ok) {
    if (ok)
        r->passed++;
    else
        r->failed++;
    return !ok && r->shown++ < 40;
}

/* A recorded number; the texts "nan", "inf", "-inf" stand for those. */
static bool recorded_number(const json_t *v, double *out) {
    if (json_is_number(v)) {
        *out = json_number_value(v);
        return true;
    }
    const char *s = json_string_value(v);
    if (!s || (strcmp(s, "nan") != 0 && strcmp(s, "inf") != 0 && strcmp(s, "-inf") != 0))
        return false;
    *out = strtod(s, NULL);
    return true;
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* The tuple with this id, its table put in place of its name. */
static const json_t *tuple(const replay *r, const char *id) {
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(r->root, "tuples"), i,
                       t) if (!strcmp(text_of(t, "id"), id)) return t;
    return NULL;
}

/* Copies of the tuples that can be cut and changed; owned by the array returned. */
static json_t *gather(const replay *r, const json_t *ids, size_t most_references) {
    json_t *out = json_array(), *id;
    size_t i;
    json_array_foreach(ids, i, id) {
        json_t *t = json_deep_copy(tuple(r, json_string_value(id))),
               *refs = json_object_get(t, "references");
        while (json_array_size(refs) > most_references)
            json_array_remove(refs, json_array_size(refs) - 1);
        const char *table = json_string_value(json_object_get(json_object_get(t, "meta"), "table"));
        if (table)
            json_object_set_new(
                t, "meta",
                json_pack("{s:O}", "raw_table",
                          json_object_get(json_object_get(r->root, "tables"), table)));
        json_array_append_new(out, t);
    }
    return out;
}

/* One recorded {key: {individual, corpus}} or {error} against what the metric gives. */
static void compare_metric(replay *r, const char *where, const char *label,
                           const json_t *definition, const json_t *args, const json_t *tuples,
                           const json_t *want) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_metric_out out = {.arena = &arena};
    size_t n = json_array_size(tuples);
    tg_metric_item *items = tg_arena_array(&arena, n + 1, sizeof *items);
    for (size_t i = 0; i < n; i++) items[i] = scoring_item(json_array_get(tuples, i), &arena);
    tg_status st = scoring_metric(text_of(definition, "id"), args, true, items, n, &out, &err);
    const char *key;
    json_t *value;
    if (st == TG_UNSUPPORTED)
        skip(r, label, 1);
    else if (st != TG_OK) {
        if (note(r, false)) printf("%s %s: %s\n", where, label, err.msg);
    } else if (json_object_get(want, "error")) {
        bool failed = out.n && out.values[0].error[0];
        if (note(r, failed))
            printf("%s %s: RL4LMs raised %s, we have a value\n", where, label,
                   text_of(want, "error"));
    } else
        json_object_foreach((json_t *)want, key, value) {
            const tg_metric_value *v = scoring_value(&out, key);
            const json_t *individual = at(value, "individual");
            double corpus = 0;
            bool ok = v != NULL;
            if (ok && recorded_number(at(value, "corpus"), &corpus))
                ok = v->has_corpus && same(v->corpus, corpus);
            else if (ok) /* a text such as "n/a" */
                ok = !v->has_corpus && !strcmp(v->error, text_of(value, "corpus"));
            if (ok && json_is_array(individual)) ok = v->n_samples == json_array_size(individual);
            for (size_t i = 0; ok && json_is_array(individual) && i < v->n_samples; i++) {
                double one = 0;
                ok = recorded_number(json_array_get(individual, i), &one) &&
                     same(v->samples[i], one);
            }
            if (note(r, ok))
                printf("%s %s %s: %.17g%s%s, recorded %.17g\n", where, label, key,
                       v ? v->corpus : 0, v && *v->error ? " " : "",
                       v ? v->error : " (no such key)", corpus);
        }
    tg_arena_fini(&arena);
}

static void replay_samples(replay *r) {
    size_t i;
    json_t *row, *want;
    const char *label;
    json_array_foreach(json_object_get(r->root, "per_sample"), i, row) {
        json_t *ids = json_pack("[s]", text_of(row, "id")), *tuples = gather(r, ids, SIZE_MAX);
        json_object_foreach(json_object_get(row, "metrics"), label, want) {
            const json_t *d = at(at(r->root, "metric_definitions"), label);
            compare_metric(r, text_of(row, "id"), label, d, at(d, "args"), tuples, want);
        }
        json_decref(tuples);
        json_decref(ids);
    }
}

/* ROUGE is recorded for several seeds of its resampling. */
static void replay_rouge_corpus(replay *r, const char *name, const char *label,
                                const json_t *tuples, const json_t *want) {
    const json_t *d = at(at(r->root, "metric_definitions"), label);
    const char *seed;
    json_t *values;
    json_object_foreach((json_t *)want, seed, values) {
        int number;
        if (sscanf(seed, "metric_seed_%d", &number) != 1) continue;
        json_t *args = json_deep_copy(at(d, "args"));
        json_object_set_new(args, "seed", json_integer(number));
        compare_metric(r, name, label, d, args, tuples, values);
        json_decref(args);
    }
}

static void replay_corpora(replay *r) {
    const char *name, *label;
    json_t *corpus, *want;
    json_object_foreach(json_object_get(r->root, "corpora"), name, corpus) {
        int most = 0;
        const char *used = text_of(corpus, "references_used");
        size_t limit = used && sscanf(used, "first %d", &most) == 1 ? (size_t)most : SIZE_MAX;
        json_t *tuples = gather(r, at(corpus, "ids"), limit), *prediction;
        size_t i;
        json_array_foreach(at(corpus, "predictions"), i, prediction)
            json_object_set(json_array_get(tuples, i), "prediction", prediction);
        json_object_foreach(json_object_get(corpus, "metrics"), label, want) {
            /* "cider, split_name=val": the split's name only goes into keys that RL4LMs forgets again */
            char id[64];
            snprintf(id, sizeof id, "%.*s", (int)strcspn(label, ","), label);
            const json_t *d = at(at(r->root, "metric_definitions"), id);
            if (!d)
                skip(r, label, 1);
            else if (!strcmp(text_of(d, "id"), "rouge") && !json_object_get(want, "error"))
                replay_rouge_corpus(r, name, label, tuples, want);
            else
                compare_metric(r, name, label, d, at(d, "args"), tuples, want);
        }
        json_decref(tuples);
    }
}

static void compare_reward(replay *r, const char *id, const char *label, const tg_metric_item *item,
                           const json_t *want) {
    const json_t *d = at(at(r->root, "reward_definitions"), label);
    tg_error err = {0};
    tg_reward_value done = {0}, open = {0};
    double value = 0;
    static const bool yes = true, no = false;
    tg_status st =
        scoring_reward(text_of(d, "id"), at(d, "args"), true, item, 1, &yes, &done, &err);
    if (st == TG_UNSUPPORTED || (st == TG_CONFIG && strstr(err.msg, "not built"))) {
        skip(r, label, 1);
        return;
    }
    bool number = recorded_number(want, &value); /* else an exception, or the text "n/a" */
    bool ok = number ? st == TG_OK && done.status == TG_REWARD_OK && same(done.value, value)
                     : done.status != TG_REWARD_OK;
    if (note(r, ok))
        printf("reward %s of %s: %.17g (status %d %s), recorded %s%.17g\n", label, id, done.value,
               (int)done.status, err.msg, number ? "" : "no number ", value);
    if (!number) return;
    st = scoring_reward(text_of(d, "id"), at(d, "args"), true, item, 1, &no, &open, &err);
    note(r, st == TG_OK && open.status == TG_REWARD_OK && open.value == 0);
}

static void replay_rewards(replay *r) {
    size_t i;
    json_t *row, *want;
    const char *label;
    json_array_foreach(json_object_get(r->root, "rewards"), i, row) {
        tg_arena arena = {0};
        const char *id = text_of(row, "id");
        json_t *ids = json_pack("[s]", id), *tuples = gather(r, ids, SIZE_MAX);
        tg_metric_item item = scoring_item(json_array_get(tuples, 0), &arena);
        json_object_foreach(json_object_get(row, "done"), label, want)
            compare_reward(r, id, label, &item, want);
        json_decref(tuples);
        json_decref(ids);
        tg_arena_fini(&arena);
    }
}

/* Scores of a batch against the recorded ones: all of them, or, of a list, those of the finished episodes. */
static void compare_batch(replay *r, const char *where, const char *label, const char *id,
                          const json_t *args, const json_t *tuples, const json_t *dones,
                          const json_t *want, const json_t *more, double factor) {
    tg_arena arena = {0};
    tg_error err = {0};
    size_t n = json_array_size(tuples), k = 0;
    tg_metric_item *items = tg_arena_array(&arena, n + 1, sizeof *items);
    bool *done = tg_arena_array(&arena, n + 1, sizeof *done);
    tg_reward_value *out = tg_arena_array(&arena, n + 1, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        items[i] = scoring_item(json_array_get(tuples, i), &arena);
        done[i] = json_is_true(json_array_get(dones, i));
    }
    bool finished_only = json_array_size(want) != n;
    tg_status st = scoring_reward(id, args, true, items, n, done, out, &err);
    if (st != TG_OK && note(r, false)) printf("%s %s: %s\n", where, label, err.msg);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        double value = 0, ours = out[i].value;
        if (finished_only && !done[i]) continue;
        if (more && done[i]) ours += factor * json_number_value(json_array_get(more, i));
        bool ok = recorded_number(json_array_get(want, k++), &value) &&
                  out[i].status == TG_REWARD_OK && same(ours, value);
        if (note(r, ok))
            printf("%s %s, episode %zu: %.17g, recorded %.17g\n", where, label, i, ours, value);
    }
    if (st == TG_OK) note(r, k == json_array_size(want));
    tg_arena_fini(&arena);
}

static void replay_batches(replay *r) {
    const json_t *section = at(r->root, "batched_rewards");
    size_t i, zeroed = 0;
    json_t *row, *want;
    const char *label;
    json_array_foreach(at(section, "cases"), i, row) {
        json_t *tuples = gather(r, at(row, "ids"), SIZE_MAX);
        json_object_foreach(json_object_get(row, "rewards"), label, want) {
            const json_t *d = at(at(r->root, "batched_reward_definitions"), label);
            json_t *args = json_deep_copy(at(d, "args"));
            if (json_number_value(at(args, "spice_coeff")) != 0) {
                json_object_set_new(args, "spice_coeff", json_real(0));
                zeroed++;
            }
            compare_batch(r, text_of(row, "case"), label, text_of(d, "id"), args, tuples,
                          at(row, "dones"), at(want, "values"), NULL, 0);
            json_decref(args);
        }
        json_decref(tuples);
    }
    if (zeroed)
        printf("explained: spider, %zu batches: SPICE was recorded as 0, so CIDEr-D and shaping "
               "are compared\n",
               zeroed);
}

/* The recorded classifier is a fixed rule; what it found is in the recorded metric. */
static void replay_intent(replay *r) {
    const json_t *s = at(r->root, "intent_accuracy"), *prompts = at(s, "prompts");
    json_t *tuples = json_array(), *row;
    size_t i;
    for (i = 0; i < json_array_size(prompts); i++)
        json_array_append_new(tuples,
                              json_pack("{s:O, s:O, s:O}", "prompt", json_array_get(prompts, i),
                                        "prediction", json_array_get(at(s, "predictions"), i),
                                        "references", json_array_get(at(s, "references"), i)));
    const json_t *met = at(at(at(s, "metric"), "intent/accuracy"), "individual");
    json_array_foreach(at(s, "rewards"), i, row) {
        json_t *args = json_deep_copy(at(row, "args"));
        double factor = at(args, "intent_coeff") ? json_number_value(at(args, "intent_coeff")) : 1;
        json_object_set_new(args, "intent_coeff", json_real(0));
        compare_batch(r, "intent_accuracy", "reward", "intent_accuracy", args, tuples,
                      at(row, "dones"), at(row, "rewards"), met, factor);
        json_decref(args);
    }
    if (s)
        printf("explained: intent_accuracy: its classifier is a network, recorded as a fixed rule; "
               "the intents "
               "it found are taken from the recording\n");
    json_decref(tuples);
}

int main(int argc, char **argv) {
    replay r = {0};
    char path[4096];
    json_error_t error;
    if (argc != 2) {
        fprintf(
            stderr,
            "usage: replay-metrics DIR    (DIR/metrics.json: a recording of RL4LMs's metrics)\n");
        return 64;
    }
    snprintf(path, sizeof path, "%s/metrics.json", argv[1]);
    r.root = json_load_file(path, 0, &error);
    if (!r.root) {
        fprintf(stderr, "replay-metrics: %s:%d: %s\n", path, error.line, error.text);
        return 66;
    }
    replay_samples(&r);
    replay_corpora(&r);
    replay_rewards(&r);
    replay_batches(&r);
    replay_intent(&r);
    for (size_t i = 0; i < r.n_skipped; i++)
        printf("skipped: %s is not built (%zu cases)\n", r.skipped[i], r.skips[i]);
    if (json_object_get(r.root, "perplexity"))
        printf("explained: perplexity is of a language model, recorded with a fixed rule in its "
               "place; it is "
               "no lexical metric and not replayed\n");
    printf("%zu passed, %zu failed\n", r.passed, r.failed);
    json_decref(r.root);
    return r.failed ? 1 : 0;
}
