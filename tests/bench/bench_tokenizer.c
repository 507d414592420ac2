/* Megabytes a second of encoding and decoding, one thread and two, and how time grows with the length of a text that
 * has no place to be cut. peer_tokenizers.sh measures Hugging Face's tokenizers on the same files.
 *
 *   bench_tokenizer     a table on stdout, JSON lines into $TEXTGEN_BENCH_JSON when set
 *
 * Text: the lines of $TEXTGEN_BENCH_TEXT, or words made here. Tokenizers: gpt2, t5-small and bert-base-uncased below
 * $TEXTGEN_ASSETS, or ones made from the text; qwen2.5, which cuts by a regular expression, only when it is there. Both are left in $BUILD/bench/tokenizer for the peer. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/bpe_train.h"
#include "common/text/encode.h"
#include "common/text/unigram_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, MAX_LINES = 20000 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, const tg_error *err) {
    fprintf(stderr, "bench_tokenizer: %s: %s\n", what, err->msg);
    exit(70);
}

static char *path_of(const char *name) {
    const char *build = getenv("BUILD");
    static char path[4][512];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/bench/tokenizer%s%s", build ? build : "build",
             *name ? "/" : "", name);
    return out;
}

static void report(const char *kind, const char *what, int threads, double mb) {
    printf("%-10s %-16s %d thread%s %9.1f MB/s\n", kind, what, threads, threads > 1 ? "s" : " ",
           mb);
    const char *path = getenv("TEXTGEN_BENCH_JSON");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(
        f,
        "{\"bench\":\"tokenizer %s, %s, threads: %d (1 MB)\",\"who\":\"textgen\",\"seconds\":%.9f,"
        "\"kind\":\"%s\",\"what\":\"%s\",\"threads\":%d,\"mb_per_s\":%.3f}\n",
        kind, what, threads, 1 / mb, kind, what, threads, mb);
    fclose(f);
}

/* ---- text and tokenizers ---- */

static uint64_t draw(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static const char *const syllables[] = {"ba", "re", "ti", "co", "st", "an", "er",
                                        "lo", "qu", "in", "th", "e",  "ou", "is",
                                        "ma", "ne", "so", "wo", "é",  "ing"};
enum { SYLLABLES = 20 };

/* Words of syllables, frequent ones short, with numbers and punctuation. */
static void make_text(tg_buf *out) {
    uint64_t seed = 7;
    while (out->len < 1500000) {
        for (int i = 0; i < 200; i++) {
            uint64_t word = draw(&seed) % (1u << (4 + draw(&seed) % 11)),
                     w = word * 2654435761u + 1;
            size_t start = out->len;
            for (uint64_t n = 1 + word % 3 + (word > 500); n--; w /= SYLLABLES)
                tg_buf_puts(out, syllables[w % SYLLABLES]);
            if (i % 12 == 0 && out->data) out->data[start] = (char)(out->data[start] & ~0x20);
            if (i % 40 == 7) tg_buf_printf(out, " %d", (int)(draw(&seed) % 3000));
            tg_buf_puts(out, i % 12 == 11 ? ". " : i % 7 == 5 ? ", " : " ");
        }
        tg_buf_puts(out, "\n");
    }
}

static void make_vocab_txt(tg_buf *out) {
    tg_buf_puts(out, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n");
    for (int inside = 0; inside < 2; inside++) {
        const char *prefix = inside ? "##" : "";
        for (int i = 0; i < SYLLABLES; i++) tg_buf_printf(out, "%s%s\n", prefix, syllables[i]);
        for (int i = 0; i < SYLLABLES; i++)
            for (int k = 0; k < SYLLABLES; k++)
                tg_buf_printf(out, "%s%s%s\n", prefix, syllables[i], syllables[k]);
        for (char c = 'a'; c <= 'z'; c++) tg_buf_printf(out, "%s%c\n", prefix, c);
        for (int d = 0; d < 10; d++) tg_buf_printf(out, "%s%d\n", prefix, d);
    }
}

static tg_status train(const char *kind, const tg_buf *text, tg_tokenizer **out, tg_error *err) {
    static const char *const special[] = {"<|endoftext|>"};
    tg_status st;
    if (!strcmp(kind, "bpe")) {
        tg_bpe_trainer *b = NULL;
        const tg_bpe_train_options o = {8000, 2, special, 1, 0};
        st = tg_bpe_trainer_create(&b, err);
        if (st == TG_OK) st = tg_bpe_trainer_add(b, text->data, text->len, err);
        if (st == TG_OK) st = tg_bpe_train(b, &o, out, err);
        tg_bpe_trainer_destroy(&b);
    } else if (!strcmp(kind, "unigram")) {
        tg_unigram_trainer *u = NULL;
        const tg_unigram_train_options o = {.vocab_size = 8000};
        st = tg_unigram_trainer_create(&u, err);
        if (st == TG_OK) st = tg_unigram_trainer_add(u, text->data, text->len, err);
        if (st == TG_OK) st = tg_unigram_train(u, &o, out, err);
        tg_unigram_trainer_destroy(&u);
    } else {
        tg_buf vocab = {0};
        char *folder = path_of("vocab"), *path = path_of("vocab/vocab.txt");
        make_vocab_txt(&vocab);
        st = tg_dir_create(folder, err);
        if (st == TG_OK) st = tg_file_write_atomic(path, vocab.data, vocab.len, err);
        if (st == TG_OK) st = tg_tokenizer_open(out, folder, err);
        tg_buf_fini(&vocab);
    }
    return st;
}

static bool has_asset(const char *name) {
    const char *assets = getenv("TEXTGEN_ASSETS");
    char folder[600];
    snprintf(folder, sizeof folder, "%s/%s", assets ? assets : "", name);
    return assets && tg_path_exists(folder);
}

static tg_tokenizer *make(const char *kind, const char *asset, const tg_buf *text) {
    const char *assets = getenv("TEXTGEN_ASSETS");
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    char folder[600];
    snprintf(folder, sizeof folder, "%s/%s", assets ? assets : "", asset);
    tg_status st =
        has_asset(asset) ? tg_tokenizer_open(&t, folder, &err) : train(kind, text, &t, &err);
    if (st == TG_OK) st = tg_tokenizer_save(t, path_of(kind), &err);
    if (st != TG_OK) die(kind, &err);
    return t;
}

/* ---- measuring ---- */

typedef struct batch {
    const tg_tokenizer *t;
    const tg_text *texts;
    size_t n, bytes;
    tg_encodings rows;
} batch;

static void encode(batch *b, const char *kind, const char *what, bool offsets, tg_team *team) {
    tg_encode_options o = tg_encode_defaults(b->t);
    o.offsets = offsets;
    double best = 1e9;
    tg_error err = {0};
    for (int i = 0; i < ROUNDS; i++) {
        double start = seconds();
        if (tg_tokenizer_encode_batch(b->t, b->texts, b->n, &o, team, &b->rows, &err) != TG_OK)
            die(what, &err);
        double time = seconds() - start;
        if (time < best) best = time;
    }
    report(kind, what, team ? 2 : 1, (double)b->bytes / best / 1e6);
}

static void decode(batch *b, const char *kind, tg_team *team) {
    size_t *end = tg_alloc_array(b->rows.n + 1, sizeof *end);
    tg_buf out = {0};
    double best = 1e9;
    tg_error err = {0};
    for (int i = 0; i < ROUNDS && end; i++) {
        tg_buf_reset(&out);
        double start = seconds();
        if (tg_tokenizer_decode_batch(b->t, b->rows.ids, b->rows.start, b->rows.n,
                                      TG_DECODE_SKIP_SPECIAL, team, &out, end, &err) != TG_OK)
            die("decode", &err);
        double time = seconds() - start;
        if (time < best) best = time;
    }
    report(kind, "decode", team ? 2 : 1, (double)out.len / best / 1e6);
    tg_buf_fini(&out);
    tg_free(end);
}

/* Time for a text of one thing again and again, at two lengths: the ratio says how it grows. */
static void growth(const tg_tokenizer *t, const char *kind, const char *name, const char *unit) {
    tg_error err = {0};
    tg_ids ids = {0};
    double time[2] = {1e9, 1e9};
    for (int k = 0; k < 2; k++) {
        tg_buf text = {0};
        while (text.len < (k ? 1000000u : 100000u)) tg_buf_puts(&text, unit);
        for (int i = 0; i < 3; i++) {
            ids.n = 0;
            double start = seconds();
            if (tg_tokenizer_encode(t, text.data, text.len, 0, &ids, &err) != TG_OK)
                die(name, &err);
            if (seconds() - start < time[k]) time[k] = seconds() - start;
        }
        tg_buf_fini(&text);
    }
    printf("%-10s 1 MB of %-18s %8.1f ms, 100 KB %7.2f ms: %5.1f times\n", kind, name,
           time[1] * 1e3, time[0] * 1e3, time[1] / time[0]);
    tg_ids_fini(&ids);
}

static void measure(const char *kind, const char *asset, const tg_buf *text, const tg_text *lines,
                    size_t n, tg_team *team) {
    tg_tokenizer *t = make(kind, asset, text);
    batch b = {t, lines, n, text->len, {0}};
    for (int two = 0; two < 2; two++) {
        encode(&b, kind, "encode offsets", true, two ? team : NULL);
        encode(&b, kind, "encode", false, two ? team : NULL);
        decode(&b, kind, two ? team : NULL);
    }
    growth(t, kind, "one letter", "a");
    growth(t, kind, "two letters", "ab");
    growth(t, kind, "Chinese", "\xE4\xB8\xAD\xE6\x96\x87\xE5\xAD\x97");
    growth(t, kind, "spaces", " ");
    growth(t, kind, "marks", "\xCC\x81\xCC\xA3");
    growth(t, kind, "emoji", "\xF0\x9F\x91\xA9\xE2\x80\x8D");
    tg_encodings_fini(&b.rows);
    tg_tokenizer_destroy(&t);
}

int main(void) {
    tg_buf text = {0};
    tg_error err = {0};
    const char *file = getenv("TEXTGEN_BENCH_TEXT");
    if (tg_dir_create(path_of(""), &err) != TG_OK) die("folder", &err);
    if (file && tg_file_read(file, (size_t)1 << 30, &text, &err) != TG_OK) die("text", &err);
    if (!file) make_text(&text);
    if (tg_file_write_atomic(path_of("text.txt"), text.data, text.len, &err) != TG_OK)
        die("text", &err);
    static tg_text lines[MAX_LINES];
    size_t n = 0;
    for (size_t i = 0; i < text.len && n < MAX_LINES; n++) {
        const char *end = memchr(text.data + i, '\n', text.len - i);
        size_t len = end ? (size_t)(end - (text.data + i)) : text.len - i;
        lines[n] = (tg_text){text.data + i, len, NULL, 0};
        i += len + 1;
    }
    tg_team *team = NULL;
    if (tg_team_create(&team, 2, &err) != TG_OK) die("threads", &err);
    printf("%zu lines, %.2f MB\n", n, (double)text.len / 1e6);
    measure("bpe", "gpt2", &text, lines, n, team);
    if (has_asset("qwen2.5")) measure("bpe split", "qwen2.5", &text, lines, n, team);
    measure("unigram", "t5-small", &text, lines, n, team);
    measure("wordpiece", "bert-base-uncased", &text, lines, n, team);
    tg_team_destroy(&team);
    tg_buf_fini(&text);
    return 0;
}
