/* Microseconds per pair of METEOR, NLTK's words and CIDEr-D, one thread, and how they grow with the length of the text.
 *
 *   bench_lexical     a table on stdout, JSON lines into $TEXTGEN_BENCH_JSON when set */
#include "common/base/alloc.h"
#include "env-server/metric/cider.h"
#include "env-server/metric/meteor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIRS = 400, REFERENCES = 1 };

static const char *const vocabulary[] = {
    "the",    "a",      "of",    "man",     "woman", "running", "runs",    "quickly", "rapidly",
    "big",    "large",  "house", "home",    "is",    "was",     "child",   "kid",     "on",
    "street", "road",   "buys",  "sells",   "with",  "car",     "vehicle", "red",     "blue",
    "happy",  "glad",   "dog's", "don't",   "Mr.",   "years",   "three",   "sitting", "bench",
    "plays",  "guitar", "music", "and",     "while", "people",  "watch",   "him",     "outside,",
    "sunny",  "day.",   "group", "talking", "near",
};

static char *text_of(size_t words, uint64_t seed) {
    tg_buf b = {0};
    for (size_t i = 0; i < words; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tg_buf_puts(&b, vocabulary[(seed >> 33) % (sizeof vocabulary / sizeof *vocabulary)]);
        tg_buf_putc(&b, ' ');
    }
    tg_buf_puts(&b, ".");
    return tg_buf_take(&b);
}

/* Of this process, so that other programs do not count. */
static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The shortest time since *start; *start becomes now. */
static void keep(double *best, double *start) {
    double now = cpu_seconds();
    if (now - *start < *best) *best = now - *start;
    *start = now;
}

static void report(const char *what, size_t words, double seconds, size_t pairs) {
    double us = seconds * 1e6 / (double)pairs;
    printf("%-10s %6zu words %12.2f us a pair %10.1f ns a word\n", what, words, us,
           us * 1e3 / (double)words);
    const char *path = getenv("TEXTGEN_BENCH_JSON");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "{\"bench\":\"lexical\",\"what\":\"%s\",\"words\":%zu,\"us_per_pair\":%.4f}\n", what,
            words, us);
    fclose(f);
}

static const tg_splitter spaces = {0};

static int run(size_t words) {
    size_t pairs = words > 1000 ? 20 : PAIRS;
    tg_metric_item *items = tg_alloc_array(pairs, sizeof *items);
    tg_sample *samples = tg_alloc_array(pairs, sizeof *samples);
    const char **references = tg_alloc_array(pairs, sizeof *references);
    double *out = tg_alloc_array(pairs, sizeof *out), value;
    tg_meteor *meteor = NULL;
    tg_meteor_work work = {0};
    tg_nltk *nltk = NULL;
    tg_nltk_list list = {0};
    tg_error err = {0};
    tg_status st = items && samples && references && out ? TG_OK : TG_NOMEM;
    for (size_t i = 0; i < pairs && st == TG_OK; i++) {
        char *text = text_of(words, 2 * i);
        references[i] = text_of(words, 2 * i + 1);
        samples[i] = (tg_sample){
            .id = "", .prompt_text = "", .references = &references[i], .n_references = REFERENCES};
        items[i] = (tg_metric_item){&samples[i], text, text ? strlen(text) : 0};
        if (!text || !references[i]) st = TG_NOMEM;
    }
    if (st == TG_OK) st = tg_meteor_create(&meteor, false, &err);
    if (st == TG_OK) st = tg_nltk_create(&nltk, TG_NLTK_CURRENT, &err);
    double best[3] = {1e9, 1e9, 1e9};
    for (int round = 0; round < 5 && st == TG_OK; round++) {
        double start = cpu_seconds();
        for (size_t i = 0; i < pairs && st == TG_OK; i++)
            st = tg_meteor_sample(meteor, &work, items[i].text, items[i].text_len, &samples[i],
                                  &value, &err);
        keep(&best[0], &start);
        for (size_t i = 0; i < pairs && st == TG_OK; i++)
            st = tg_nltk_words(nltk, items[i].text, items[i].text_len, &list, &err);
        keep(&best[1], &start);
        if (st == TG_OK) st = tg_cider_score(items, pairs, &spaces, NULL, 1, out, &err);
        keep(&best[2], &start);
    }
    static const char *const names[] = {"meteor", "words", "cider"};
    for (int k = 0; k < 3 && st == TG_OK; k++) report(names[k], words, best[k], pairs);
    if (st != TG_OK) fprintf(stderr, "bench_lexical: %s\n", err.msg);
    tg_meteor_work_fini(&work);
    tg_meteor_destroy(&meteor);
    tg_nltk_list_fini(&list);
    tg_nltk_destroy(&nltk);
    for (size_t i = 0; i < pairs && items && references; i++) {
        tg_free((void *)items[i].text);
        tg_free((void *)references[i]);
    }
    tg_free(items);
    tg_free(samples);
    tg_free(references);
    tg_free(out);
    return st == TG_OK ? 0 : 1;
}

int main(void) {
    int bad = 0;
    static const size_t sizes[] = {15, 50, 500, 5000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !bad; i++) bad = run(sizes[i]);
    return bad;
}
