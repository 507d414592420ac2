/* Time of each lexical metric per pair of 60 words with one reference, on one thread: a corpus of 500 pairs,
 * and one pair per call as a reward sees it. The texts share about three quarters of their words.
 *
 *   bench_metrics [SECONDS]      per row; default 0.5
 *   bench_metrics pairs          the pairs as JSON lines, for other implementations
 * CPU time. Prints a table, and one JSON line for each row, of one pair per call where there is a reward. */
#include "common/base/rng.h"
#include "tests/support/bench_line.h"
#include "tests/support/scoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIRS = 500, WORDS = 60, VOCABULARY = 3000 };

typedef struct row {
    const char *title, *id, *args, *reward, *reward_args;
} row;

static const row rows[] = {
    {"rouge 1/2/L/Lsum", "rouge", "{}", "rouge", "{\"rouge_type\": \"rougeL\"}"},
    {"bleu", "bleu", "{}", "bleu", "{}"},
    {"google_bleu", "google_bleu", "{}", NULL, NULL},
    {"sacre_bleu 13a", "sacre_bleu", "{}", "sacre_bleu", "{}"},
    {"sacre_bleu intl", "sacre_bleu", "{\"tokenize\": \"intl\"}", "sacre_bleu",
     "{\"tokenize\": \"intl\"}"},
    {"chrF", "chrf", "{}", "chrf", "{}"},
    {"chrF++", "chrf", "{\"word_order\": 2}", "chrf", "{\"word_order\": 2}"},
    {"ter", "ter", "{}", "ter", "{}"},
    {"rouge_l_max", "rouge_l_max", "{}", "rouge_l_max", "{}"},
    {"meteor", "meteor", "{}", "meteor", "{}"},
    {"cider", "cider", "{\"tokenize\": \"none\"}", NULL, NULL},
};

static char vocabulary[VOCABULARY][24];

/* Words of English shape: two or three syllables and an ending. */
static void make_vocabulary(tg_rng *r) {
    static const char *const parts[] = {"ca",  "re",  "ti", "mo", "lan", "ser",
                                        "pro", "con", "de", "in", "ter", "val"};
    static const char *const ends[] = {"",     "s",  "ed",   "ing", "ation", "ly",
                                       "ness", "er", "able", "e",   "t",     "n"};
    for (int i = 0; i < VOCABULARY; i++) {
        char *w = vocabulary[i];
        *w = 0;
        for (uint64_t k = 1 + tg_rng_below(r, 2); k-- > 0;) strcat(w, parts[tg_rng_below(r, 12)]);
        strcat(w, ends[tg_rng_below(r, 12)]);
    }
}

/* Few words are frequent, most are rare. */
static const char *draw(tg_rng *r) {
    double u = tg_rng_uniform(r);
    return vocabulary[(int)(u * u * u * VOCABULARY)];
}

static char *write_text(const char *const *words) {
    char *out = calloc(1, WORDS * 26), *at = out;
    for (int i = 0; i < WORDS; i++)
        at += sprintf(at, "%s%s%s", i ? " " : "", words[i],
                      i % 12 == 11   ? "."
                      : i % 17 == 16 ? ","
                                     : "");
    return out;
}

static void make_pairs(tg_metric_item *items, tg_sample *samples, const char **refs) {
    tg_rng r = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    make_vocabulary(&r);
    for (int k = 0; k < PAIRS; k++) {
        const char *a[WORDS], *b[WORDS];
        for (int i = 0; i < WORDS; i++) a[i] = draw(&r);
        int cut = (int)tg_rng_below(&r, WORDS - 10);
        for (int i = 0; i < WORDS; i++) b[i] = tg_rng_below(&r, 4) ? a[i] : draw(&r);
        for (int i = 0; i < 5; i++) { /* a block of five changes places with the one behind it */
            const char *swap = b[cut + i];
            b[cut + i] = b[cut + 5 + i], b[cut + 5 + i] = swap;
        }
        char *text = write_text(a);
        refs[k] = write_text(b);
        samples[k] = (tg_sample){.id = "",
                                 .prompt_text = "",
                                 .meta_json = "",
                                 .references = &refs[k],
                                 .n_references = 1};
        items[k] = (tg_metric_item){&samples[k], text, strlen(text)};
    }
}

/* CPU time, so that other programs do not count. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(tg_status st, const tg_error *err) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_metrics: %s\n", err->msg);
    exit(tg_status_exit_code(st));
}

/* Microseconds per pair. */
static double corpus_time(const row *w, const tg_metric_item *items, double seconds) {
    json_t *args = json_loads(w->args, 0, NULL);
    uint64_t start = cpu_ns(), passes = 0, now;
    do {
        tg_arena arena = {0};
        tg_error err = {0};
        tg_metric_out out = {.arena = &arena};
        must(scoring_metric(w->id, args, false, items, PAIRS, &out, &err), &err);
        tg_arena_fini(&arena);
        passes++;
        now = cpu_ns();
    } while ((double)(now - start) < seconds * 1e9);
    json_decref(args);
    return (double)(now - start) / 1e3 / (double)(passes * PAIRS);
}

static double single_time(const row *w, const tg_metric_item *items, double seconds) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_choice c;
    tg_node *section;
    tg_reward r;
    char text[256];
    snprintf(text, sizeof text, "{\"id\": \"%s\", \"args\": %s}", w->reward, w->reward_args);
    must(tg_tree_parse(&arena, "bench", text, strlen(text), &section, &err), &err);
    must(tg_choice_read(tg_reward_registry(), section, "reward", &arena, &c, &err), &err);
    must(tg_reward_open(&r, (const tg_reward_ops *)c.entry, c.options, NULL, &err), &err);
    uint64_t start = cpu_ns(), calls = 0, now;
    do {
        for (int k = 0; k < PAIRS; k++, calls++) {
            tg_reward_input in = {.sample = items[k].sample,
                                  .text = items[k].text,
                                  .text_len = items[k].text_len,
                                  .done = true};
            tg_reward_value v;
            must(tg_reward_score(&r, &in, 1, &v, &err), &err);
        }
        now = cpu_ns();
    } while ((double)(now - start) < seconds * 1e9);
    tg_reward_close(&r);
    tg_arena_fini(&arena);
    return (double)(now - start) / 1e3 / (double)calls;
}

int main(int argc, char **argv) {
    static tg_metric_item items[PAIRS];
    static tg_sample samples[PAIRS];
    static const char *refs[PAIRS];
    double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    make_pairs(items, samples, refs);
    if (argc > 1 && !strcmp(argv[1], "pairs")) {
        for (int k = 0; k < PAIRS; k++)
            printf("{\"prediction\": \"%s\", \"references\": [\"%s\"]}\n", items[k].text, refs[k]);
        return 0;
    }
    printf("%-20s %14s %18s\n", "60-word pairs", "corpus, us", "one by one, us");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double corpus = corpus_time(&rows[i], items, seconds),
               single = rows[i].reward ? single_time(&rows[i], items, seconds) : 0;
        if (rows[i].reward)
            printf("%-20s %14.2f %18.2f\n", rows[i].title, corpus, single);
        else
            printf("%-20s %14.2f\n", rows[i].title, corpus);
        char name[64];
        snprintf(name, sizeof name, "metric %s", rows[i].title);
        tg_bench_line(
            &(tg_bench_result){.name = name, .seconds = (single > 0 ? single : corpus) / 1e6});
    }
    return 0;
}
