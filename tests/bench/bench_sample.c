/* Microseconds to choose one token from a row of logits, one thread, by settings and size of the vocabulary: everything that is not the model.
 *
 *   bench_sample     a table on stdout, JSON lines into $TEXTGEN_BENCH_JSON when set */
#include "common/base/rng.h"
#include "learner/policy/beam.h"
#include "learner/policy/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20, HISTORY = 200, PROMPT = 100 };

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(const char *what, int V, double seconds) {
    printf("%-64s %7d tokens %9.1f us\n", what, V, seconds * 1e6);
    const char *path = getenv("TEXTGEN_BENCH_JSON");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "{\"bench\":\"choose one of %d tokens, %s\",\"who\":\"textgen\",\"seconds\":%.9f}\n",
            V, what, seconds);
    fclose(f);
}

static bool read_settings(const char *text, tg_arena *arena, tg_gen_settings *s) {
    tg_error err;
    tg_node *node = NULL;
    return tg_tree_parse(arena, "bench", text, strlen(text), &node, &err) == TG_OK &&
           tg_gen_settings_read(s, node, "bench", arena, &err) == TG_OK;
}

static double sample_seconds(const tg_gen_settings *s, const float *logits, int V,
                             tg_gen_space *w) {
    int32_t history[HISTORY];
    for (int i = 0; i < HISTORY; i++) history[i] = i * 7 % V;
    const tg_gen_context c = {history, HISTORY, PROMPT, 1000, history, PROMPT};
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        tg_draw d;
        tg_error err;
        double start = cpu_seconds();
        if (tg_sample(s, &c, logits, V, NULL, (double)i / ROUNDS, w, &d, &err) != TG_OK) return -1;
        double took = cpu_seconds() - start;
        best = took < best ? took : best;
    }
    return best;
}

/* A step of all beams, for each of them. */
static double beam_seconds(const tg_gen_settings *s, const float *logits, int V, tg_gen_space *w) {
    enum { LEN = 64, BEAMS = 5 };
    tg_beams *b;
    tg_error err;
    const int32_t prompt = 1;
    const float *rows[BEAMS] = {logits, logits, logits, logits, logits};
    if (tg_beams_create(&b, s, V, LEN, &err) != TG_OK) return -1;
    tg_beams_start(b, &(tg_beam_prompt){.tokens = &prompt, .n = 1, .max_new = LEN - 1});
    double best = 1e9;
    for (int i = 0; i < ROUNDS && !tg_beams_done(b); i++) {
        double start = cpu_seconds();
        if (tg_beams_step(b, rows, w, &err) != TG_OK) break;
        double took = (cpu_seconds() - start) / BEAMS;
        best = took < best ? took : best;
    }
    tg_beams_destroy(&b);
    return best;
}

int main(void) {
    static const char *const kinds[] = {
        "{}",
        "{do_sample: true, top_k: 0}",
        "{do_sample: true}",
        "{do_sample: true, top_k: 0, top_p: 0.9}",
        "{do_sample: true, top_k: 0, typical_p: 0.9}",
        "{do_sample: true, repetition_penalty: 1.2, no_repeat_ngram_size: 3}",
        "{num_beams: 5}",
    };
    static const int sizes[] = {8000, 50257, 128256};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t v = 0; v < sizeof sizes / sizeof *sizes; v++) {
            int V = sizes[v];
            tg_arena arena = {0};
            tg_gen_settings s;
            tg_gen_space w;
            tg_error err;
            float *logits = malloc((size_t)V * sizeof *logits);
            if (!logits || !read_settings(kinds[k], &arena, &s) ||
                tg_gen_space_init(&w, V, &err) != TG_OK)
                return 70;
            tg_rng r = tg_rng_at(1, TG_RNG_TEST, 0, 0);
            for (int i = 0; i < V; i++) logits[i] = (float)(3 * tg_rng_normal(&r));
            report(kinds[k], V,
                   s.num_beams > 1 ? beam_seconds(&s, logits, V, &w)
                                   : sample_seconds(&s, logits, V, &w));
            tg_gen_space_fini(&w);
            tg_arena_fini(&arena);
            free(logits);
        }
    }
    return 0;
}
