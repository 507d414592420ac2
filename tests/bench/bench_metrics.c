/* Time of each lexical metric per pair of texts with one reference: a corpus of pairs on one thread and on two, and one pair
 * per call as a reward sees it; then how the time grows with the length. The texts share about three quarters of their words.
 *
 *   bench_metrics [SECONDS [WORDS [TITLE]]]   per measurement, default 0.3; only texts of WORDS words; only this row
 *   bench_metrics pairs [WORDS]               the pairs as JSON lines, for other implementations
 * CPU time, but what two threads take and how many times less that is than one takes for the same is measured by the clock
 * on the wall. Prints tables, and one JSON line for each row: the slower of corpus and single pairs. */
#include "common/base/rng.h"
#include "tests/support/bench_line.h"
#include "tests/support/scoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIRS = 500, VOCABULARY = 3000, WORDS = 60 };

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

static char *write_text(const char *const *words, size_t n) {
    char *out = calloc(1, n * 26 + 1), *at = out;
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s%s%s", i ? " " : "", words[i],
                      i % 12 == 11   ? "."
                      : i % 17 == 16 ? ","
                                     : "");
    return out;
}

typedef struct corpus {
    size_t n, words;
    tg_metric_item *items;
    tg_sample *samples;
    const char **refs;
} corpus;

/* Pairs of texts of this many words, fewer if they are long. */
static corpus *make_pairs(size_t words, size_t n) {
    corpus *c = calloc(1, sizeof *c);
    c->words = words, c->n = words > 1000 ? n / 25 : n;
    c->items = calloc(c->n, sizeof *c->items);
    c->samples = calloc(c->n, sizeof *c->samples);
    c->refs = calloc(c->n, sizeof *c->refs);
    const char **a = calloc(2 * words, sizeof *a), **b = a + words;
    tg_rng r = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    make_vocabulary(&r);
    for (size_t k = 0; k < c->n; k++) {
        for (size_t i = 0; i < words; i++) a[i] = draw(&r);
        for (size_t i = 0; i < words; i++) b[i] = tg_rng_below(&r, 4) ? a[i] : draw(&r);
        size_t cut = words > 10 ? (size_t)tg_rng_below(&r, words - 10) : words;
        for (size_t i = cut; i < cut + 5 && i + 5 < words; i++) { /* blocks of five change places */
            const char *swap = b[i];
            b[i] = b[i + 5], b[i + 5] = swap;
        }
        char *text = write_text(a, words);
        c->refs[k] = write_text(b, words);
        c->samples[k] = (tg_sample){.id = "",
                                    .prompt_text = "",
                                    .meta_json = "",
                                    .references = &c->refs[k],
                                    .n_references = 1};
        c->items[k] = (tg_metric_item){&c->samples[k], text, strlen(text)};
    }
    free(a);
    return c;
}

static void drop_pairs(corpus *c) {
    for (size_t k = 0; k < c->n; k++) {
        free((void *)c->items[k].text);
        free((void *)c->refs[k]);
    }
    free(c->items);
    free(c->samples);
    free(c->refs);
    free(c);
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(tg_status st, const tg_error *err) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_metrics: %s\n", err->msg);
    exit(tg_status_exit_code(st));
}

static tg_choice choose(const tg_registry *registry, const char *id, const char *args,
                        tg_arena *arena) {
    tg_error err = {0};
    tg_choice c;
    tg_node *section;
    char text[256];
    snprintf(text, sizeof text, "{\"id\": \"%s\", \"args\": %s}", id, args);
    must(tg_tree_parse(arena, "bench", text, strlen(text), &section, &err), &err);
    must(tg_choice_read(registry, section, registry->kind, arena, &c, &err), &err);
    return c;
}

/* Microseconds per pair: the fastest pass over the corpus. */
static double corpus_time(const row *w, const corpus *c, int threads, clockid_t clock,
                          double seconds) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_metric m;
    tg_choice choice = choose(tg_metric_registry(), w->id, w->args, &arena);
    must(tg_metric_open(&m, (const tg_metric_ops *)choice.entry, choice.options,
                        &(tg_open_context){0}, &err),
         &err);
    tg_metric_input in = {.items = c->items, .n = c->n, .split = TG_SPLIT_TEST, .threads = threads};
    uint64_t start = now_ns(clock), best = UINT64_MAX, now = start;
    for (int pass = 0; pass < 4 || (double)(now - start) < seconds * 1e9; pass++) {
        tg_arena values = {0};
        tg_metric_out out = {.arena = &values};
        uint64_t before = now;
        must(tg_metric_compute(&m, &in, &out, &err), &err);
        tg_arena_fini(&values);
        now = now_ns(clock);
        if (now - before < best) best = now - before;
    }
    tg_metric_close(&m);
    tg_arena_fini(&arena);
    return (double)best / 1e3 / (double)c->n;
}

static double single_time(const row *w, const corpus *c, double seconds) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_reward r;
    tg_choice choice = choose(tg_reward_registry(), w->reward, w->reward_args, &arena);
    must(tg_reward_open(&r, (const tg_reward_ops *)choice.entry, choice.options, NULL, &err), &err);
    uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID), best = UINT64_MAX, now = start;
    do {
        uint64_t before = now;
        for (size_t k = 0; k < c->n; k++) {
            tg_reward_input in = {.sample = c->items[k].sample,
                                  .text = c->items[k].text,
                                  .text_len = c->items[k].text_len,
                                  .done = true};
            tg_reward_value v;
            must(tg_reward_score(&r, &in, 1, &v, &err), &err);
        }
        now = now_ns(CLOCK_THREAD_CPUTIME_ID);
        if (now - before < best) best = now - before;
    } while ((double)(now - start) < seconds * 1e9);
    tg_reward_close(&r);
    tg_arena_fini(&arena);
    return (double)best / 1e3 / (double)c->n;
}

static bool wanted(const row *w, const char *title) {
    return !title || !strcmp(w->title, title);
}

/* many: for threads, which take a while to start. */
static void print_table(const corpus *c, const corpus *many, double seconds, const char *title) {
    printf("%-18s %4zu words %14s %16s %18s\n", "us a pair", c->words, "corpus", "two threads",
           "pair by pair");
    for (const row *w = rows; w < rows + sizeof rows / sizeof *rows; w++) {
        if (!wanted(w, title)) continue;
        double whole = corpus_time(w, c, 1, CLOCK_THREAD_CPUTIME_ID, seconds),
               single = w->reward ? single_time(w, c, seconds) : 0,
               one = corpus_time(w, many, 1, CLOCK_MONOTONIC, seconds),
               two = corpus_time(w, many, 2, CLOCK_MONOTONIC, seconds);
        printf("%-30s %13.2f %9.2f (%3.1fx)", w->title, whole, two, one / two);
        if (w->reward)
            printf(" %18.2f\n", single);
        else
            printf("\n");
        char name[96];
        if (c->words == WORDS)
            snprintf(name, sizeof name, "metric %s", w->title);
        else
            snprintf(name, sizeof name, "metric %s, %zu words", w->title, c->words);
        tg_bench_line(
            &(tg_bench_result){.name = name, .seconds = (single > whole ? single : whole) / 1e6});
    }
}

/* A corpus on one thread; a text that is ten times longer should take ten times longer. */
static void print_growth(double seconds) {
    static const size_t sizes[] = {10, 100, 1000, 10000};
    enum { SIZES = sizeof sizes / sizeof *sizes, ROWS = sizeof rows / sizeof *rows };
    double us[ROWS][SIZES] = {{0}};
    for (int k = 0; k < SIZES; k++) {
        corpus *c = make_pairs(sizes[k], PAIRS);
        for (int i = 0; i < ROWS; i++)
            if (strcmp(rows[i].id, "ter") != 0 || sizes[k] <= 100) /* grows with the cube */
                us[i][k] = corpus_time(&rows[i], c, 1, CLOCK_THREAD_CPUTIME_ID, seconds / 10);
        drop_pairs(c);
    }
    printf("\n%-18s", "ns a word");
    for (int k = 0; k < SIZES; k++) printf(" %8zu words", sizes[k]);
    printf("\n");
    for (int i = 0; i < ROWS; i++) {
        printf("%-18s", rows[i].title);
        for (int k = 0; k < SIZES && us[i][k] > 0; k++)
            printf(" %14.1f", us[i][k] * 1e3 / (double)sizes[k]);
        printf("\n");
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "pairs")) {
        corpus *c = make_pairs(argc > 2 ? (size_t)atol(argv[2]) : WORDS, PAIRS);
        for (size_t k = 0; k < c->n; k++)
            printf("{\"prediction\": \"%s\", \"references\": [\"%s\"]}\n", c->items[k].text,
                   c->refs[k]);
        drop_pairs(c);
        return 0;
    }
    static const size_t sizes[] = {WORDS, 10, 300};
    double seconds = argc > 1 ? atof(argv[1]) : 0.3;
    for (size_t i = 0; i < (argc > 2 ? 1 : sizeof sizes / sizeof *sizes); i++) {
        size_t words = argc > 2 ? (size_t)atol(argv[2]) : sizes[i];
        corpus *c = make_pairs(words, PAIRS), *many = make_pairs(words, words > 100 ? 1000 : 4000);
        print_table(c, many, seconds, argc > 3 ? argv[3] : NULL);
        drop_pairs(c);
        drop_pairs(many);
    }
    if (argc <= 2) print_growth(seconds);
    return 0;
}
