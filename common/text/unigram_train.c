/* Expectation maximisation on counted words, and pruning. One thread, words in the order of their bytes, so the result
 * is a function of the counts alone. */
#include "common/text/unigram_train.h"

#include "common/base/alloc.h"
#include "common/text/nfc.h"
#include "common/text/tokenizer_impl.h"
#include "common/text/trie.h"
#include "common/text/unicode.h"
#include "common/text/unigram_seed.h"
#include "common/text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\xE2\x96\x81"
enum { MAX_WORD = 512, SUB_ITERATIONS = 2, SPECIALS = 3 };
static const double shrink = 0.75;

struct tg_unigram_trainer {
    tg_map words; /* with the mark in front -> count */
    tg_point *points;
    size_t points_cap;
    tg_aligned normal;
    tg_buf clean, word;
};

/* ---- counting ---- */

tg_status tg_unigram_trainer_create(tg_unigram_trainer **out, tg_error *err) {
    *out = tg_alloc(sizeof **out);
    return *out ? TG_OK : tg_fail_nomem(err, sizeof **out);
}

void tg_unigram_trainer_destroy(tg_unigram_trainer **u) {
    if (!*u) return;
    tg_map_fini(&(*u)->words);
    tg_free((*u)->points);
    tg_aligned_fini(&(*u)->normal);
    tg_buf_fini(&(*u)->clean);
    tg_buf_fini(&(*u)->word);
    tg_free(*u);
    *u = NULL;
}

/* A word longer than MAX_WORD bytes is left out: nothing is learnt from it that shorter ones do not teach. */
static bool count_word(tg_unigram_trainer *u, const char *s, size_t len) {
    if (!len || len > MAX_WORD - 3 || memchr(s, 0, len)) return true;
    tg_buf_reset(&u->word);
    tg_buf_puts(&u->word, MARK);
    tg_buf_append(&u->word, s, len);
    uint64_t count = 0;
    if (u->word.failed) return false;
    tg_map_get(&u->words, u->word.data, u->word.len, &count);
    return tg_map_set(&u->words, u->word.data, u->word.len, count + 1);
}

tg_status tg_unigram_trainer_add(tg_unigram_trainer *u, const char *text, size_t len,
                                 tg_error *err) {
    tg_buf_reset(&u->clean);
    tg_utf8_append_lossy(&u->clean, text, len);
    tg_view v = {u->clean.data ? u->clean.data : "", u->clean.len, NULL};
    bool ok = !u->clean.failed;
    if (ok && !tg_nf_is_clean(TG_NFKC, v.s, v.len)) {
        tg_aligned_reset(&u->normal, false);
        ok = tg_nf_run(TG_NFKC, &u->points, &u->points_cap, v, &u->normal);
        v = tg_aligned_view(&u->normal);
    }
    size_t start = 0;
    for (size_t i = 0; i < v.len && ok;) {
        unsigned n;
        bool space = tg_unicode_class(tg_utf8_at(v.s + i, &n)) == TG_CP_SPACE;
        if (space) ok = count_word(u, v.s + start, i - start), start = i + n;
        i += n;
    }
    if (ok) ok = count_word(u, v.s + start, v.len - start);
    return ok ? TG_OK : tg_fail_nomem(err, len);
}

/* ---- the model in training ---- */

typedef struct training {
    const tg_map_entry **words; /* in the order of their bytes */
    size_t n_words;
    tg_piece *pieces; /* score: log probability */
    size_t n;
    tg_trie trie;
    double *weight;   /* probability of a piece, times per_char for each of its characters */
    double per_char;  /* keeps products of probabilities near 1 */
    double *expected; /* how often each is used */
} training;

static int by_key(const void *x, const void *y) {
    const tg_map_entry *a = *(const tg_map_entry *const *)x, *b = *(const tg_map_entry *const *)y;
    int order = memcmp(a->key, b->key, a->key_len < b->key_len ? a->key_len : b->key_len);
    if (order) return order;
    return a->key_len < b->key_len ? -1 : a->key_len > b->key_len;
}

static bool sort_words(training *t, const tg_map *words) {
    t->words = tg_alloc_array(words->count + 1, sizeof *t->words);
    if (!t->words) return false;
    for (size_t i = 0; i < words->count; i++) t->words[i] = &words->entries[i];
    t->n_words = words->count;
    qsort(t->words, t->n_words, sizeof *t->words, by_key);
    return true;
}

/* After the pieces have changed. */
static bool index_pieces(training *t) {
    tg_trie_fini(&t->trie);
    if (!tg_trie_init(&t->trie)) return false;
    for (size_t i = 0; i < t->n; i++) {
        if (!tg_trie_set(&t->trie, t->pieces[i].text, t->pieces[i].len, (int32_t)i)) return false;
        t->weight[i] = exp(t->pieces[i].score) * pow(t->per_char, t->pieces[i].chars);
    }
    return true;
}

/* Expected uses of every piece; returns the log likelihood of the text. */
static double expect(training *t, double *chars) {
    double alpha[MAX_WORD + 1], beta[MAX_WORD + 1], total = 0;
    memset(t->expected, 0, t->n * sizeof *t->expected);
    *chars = 0;
    for (size_t w = 0; w < t->n_words; w++) {
        const char *s = t->words[w]->key;
        size_t len = t->words[w]->key_len;
        double count = (double)t->words[w]->value;
        memset(alpha, 0, (len + 1) * sizeof *alpha);
        memset(beta, 0, (len + 1) * sizeof *beta);
        alpha[0] = beta[len] = 1;
        for (size_t i = 0; i < len; i++) {
            if (alpha[i] == 0) continue;
            uint32_t node = 0;
            for (size_t k = i;
                 k < len && (node = tg_trie_step(&t->trie, node, (unsigned char)s[k])); k++) {
                int32_t id = t->trie.value[node];
                if (id >= 0) alpha[k + 1] += alpha[i] * t->weight[id];
            }
        }
        double z = alpha[len];
        if (!(z > 0) || !isfinite(z)) continue;
        for (size_t i = len; i-- > 0;) {
            if (alpha[i] == 0) continue;
            uint32_t node = 0;
            for (size_t k = i;
                 k < len && (node = tg_trie_step(&t->trie, node, (unsigned char)s[k])); k++) {
                int32_t id = t->trie.value[node];
                if (id < 0) continue;
                double way = t->weight[id] * beta[k + 1];
                beta[i] += way;
                t->expected[id] += count * alpha[i] * way / z;
            }
        }
        size_t n = tg_utf8_count(s, len);
        *chars += count * (double)n;
        total += count * (log(z) - (double)n * log(t->per_char));
    }
    return total;
}

static double digamma(double x) {
    double result = 0;
    while (x < 7) result -= 1 / x, x += 1;
    x -= 0.5;
    double xx = 1 / x, xx2 = xx * xx, xx4 = xx2 * xx2;
    return result + log(x) + xx2 / 24 - 7 * xx4 / 960 + 31 * xx4 * xx2 / 8064 -
           127 * xx4 * xx4 / 30720;
}

/* New probabilities; longer pieces that are hardly used go. */
static void maximise(training *t) {
    double sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->expected[i] < 0.5 && t->pieces[i].chars > 1) continue;
        t->pieces[kept] = t->pieces[i];
        t->expected[kept++] = t->expected[i] < 0.5 ? 0.5 : t->expected[i];
    }
    t->n = kept;
    for (size_t i = 0; i < t->n; i++) sum += t->expected[i];
    double log_sum = digamma(sum);
    for (size_t i = 0; i < t->n; i++) t->pieces[i].score = digamma(t->expected[i]) - log_sum;
}

/* ---- pruning ---- */

typedef struct step {
    double score;
    uint32_t start;
    int32_t id;
} step;

/* The best way to cut text, without the piece `without`; false: there is none. */
static bool best_path(const training *t, const char *s, size_t len, int32_t without, step *path) {
    for (size_t i = 1; i <= len; i++) path[i].id = -1;
    path[0] = (step){0};
    for (size_t i = 0; i < len; i++) {
        if (i && path[i].id < 0) continue;
        uint32_t node = 0;
        for (size_t k = i; k < len && (node = tg_trie_step(&t->trie, node, (unsigned char)s[k]));
             k++) {
            int32_t id = t->trie.value[node];
            if (id < 0 || id == without) continue;
            double score = path[i].score + t->pieces[id].score;
            if (path[k + 1].id < 0 || score > path[k + 1].score)
                path[k + 1] = (step){score, (uint32_t)i, id};
        }
    }
    return len == 0 || path[len].id >= 0;
}

typedef struct candidate {
    double loss;
    size_t piece;
} candidate;

static int by_loss(const void *x, const void *y) {
    const candidate *a = x, *b = y;
    if (a->loss != b->loss) return a->loss > b->loss ? -1 : 1;
    return a->piece < b->piece ? -1 : 1;
}

/* How much likelihood is lost when the piece is written by others. */
static double loss_of(const training *t, size_t piece, const double *freq, double sum) {
    step path[MAX_WORD + 1];
    const tg_piece *p = &t->pieces[piece];
    if (p->chars == 1 || !best_path(t, p->text, p->len, (int32_t)piece, path)) return INFINITY;
    if (freq[piece] == 0) return -1;
    double parts = 0, alternative = 0;
    for (size_t i = p->len; i; i = path[i].start) parts++;
    double log_sum = log(sum + freq[piece] * (parts - 1));
    for (size_t i = p->len; i; i = path[i].start)
        alternative += log(freq[path[i].id] + freq[piece]) - log_sum;
    return freq[piece] / sum * (log(freq[piece]) - log(sum) - alternative);
}

/* Keeps the `size` pieces that are hardest to do without. False: out of memory. */
static bool prune(training *t, size_t size) {
    double *freq = tg_alloc_array(t->n + 1, sizeof *freq), sum = 0;
    candidate *c = tg_alloc_array(t->n + 1, sizeof *c);
    tg_piece *kept = tg_alloc_array(t->n + 1, sizeof *kept);
    bool ok = freq && c && kept;
    step path[MAX_WORD + 1];
    for (size_t w = 0; ok && w < t->n_words; w++) {
        const tg_map_entry *e = t->words[w];
        if (!best_path(t, e->key, e->key_len, -1, path)) continue;
        for (size_t i = e->key_len; i; i = path[i].start) freq[path[i].id] += (double)e->value;
    }
    for (size_t i = 0; ok && i < t->n; i++) sum += freq[i];
    for (size_t i = 0; ok && i < t->n; i++) c[i] = (candidate){loss_of(t, i, freq, sum), i};
    if (ok) {
        qsort(c, t->n, sizeof *c, by_loss);
        size_t n = 0;
        for (size_t i = 0; i < t->n; i++)
            if ((n < size && c[i].loss >= 0) || isinf(c[i].loss)) kept[n++] = t->pieces[c[i].piece];
        memcpy(t->pieces, kept, n * sizeof *kept);
        t->n = n;
    }
    tg_free(freq);
    tg_free(c);
    tg_free(kept);
    return ok;
}

/* ---- the whole ---- */

static bool iterate(training *t) {
    for (int i = 0; i < SUB_ITERATIONS; i++) {
        double chars;
        if (!index_pieces(t)) return false;
        double likelihood = expect(t, &chars);
        maximise(t);
        if (chars > 0) t->per_char = exp(-likelihood / chars);
    }
    return index_pieces(t);
}

/* Characters are always kept; of the others those that the text needs most. */
static int by_probability(const void *x, const void *y) {
    const tg_piece *a = x, *b = y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
    if (order) return order;
    return a->len < b->len ? -1 : a->len > b->len;
}

static void finalise(training *t, size_t size) {
    size_t chars = 0, longer = 0, n = 0;
    qsort(t->pieces, t->n, sizeof *t->pieces, by_probability);
    for (size_t i = 0; i < t->n; i++) chars += t->pieces[i].chars == 1;
    size_t room = size > chars ? size - chars : 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->pieces[i].chars == 1 || longer++ < room) t->pieces[n++] = t->pieces[i];
    t->n = n;
}

static tg_status train(training *t, const tg_unigram_trainer *u, const tg_unigram_train_options *o,
                       tg_error *err) {
    size_t target = (size_t)o->vocab_size - SPECIALS, chars = 0;
    size_t max_piece = o->max_piece ? (size_t)o->max_piece : 16;
    tg_status st =
        tg_unigram_seeds(&u->words, max_piece, o->max_seeds ? (size_t)o->max_seeds : 1000000,
                         &t->pieces, &t->n, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < t->n; i++) chars += t->pieces[i].chars == 1;
    if (chars > target)
        return tg_fail(err, TG_CONFIG,
                       "tokenizer training: the text has %zu characters; a vocabulary of %lld has "
                       "room for %zu: raise it, or leave rare characters out of the text",
                       chars, (long long)o->vocab_size, target);
    double sum = 0;
    for (size_t i = 0; i < t->n; i++) sum += t->pieces[i].score;
    for (size_t i = 0; i < t->n; i++) t->pieces[i].score = log(t->pieces[i].score) - log(sum);
    t->per_char = 20;
    t->weight = tg_alloc_array(t->n + 1, sizeof *t->weight);
    t->expected = tg_alloc_array(t->n + 1, sizeof *t->expected);
    bool ok = t->weight && t->expected && sort_words(t, &u->words);
    size_t wanted = target + target / 10;
    while (ok) {
        ok = iterate(t);
        if (!ok || t->n <= wanted) break;
        size_t smaller = (size_t)((double)t->n * shrink), before = t->n;
        ok = prune(t, smaller > wanted ? smaller : wanted);
        if (t->n == before) break;
    }
    if (!ok) return tg_fail_nomem(err, t->n * sizeof *t->pieces);
    finalise(t, target);
    return TG_OK;
}

#define SPECIAL(id, name)                                                                          \
    "{\"id\":" id ",\"content\":\"" name "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":"   \
    "false,\"normalized\":false,\"special\":true}"
#define METASPACE                                                                                  \
    "{\"type\":\"Metaspace\",\"replacement\":\"" MARK                                              \
    "\",\"prepend_scheme\":\"always\",\"split\":true}"
#define TEXT(name) "{\"Sequence\":{\"id\":\"" name "\",\"type_id\":0}}"
#define END "{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}"

static void write_json(tg_buf *out, const training *t) {
    tg_buf_puts(
        out,
        "{\"version\":\"1.0\",\"added_tokens\":[" SPECIAL("0", "<pad>") "," SPECIAL(
            "1",
            "</s>") "," SPECIAL("2",
                                "<unk>") "],\"normalizer\":{\"type\":\"NFKC\"},"
                                         "\"pre_tokenizer\":{\"type\":\"Sequence\","
                                         "\"pretokenizers\":[{\"type\":"
                                         "\"WhitespaceSplit\"}," METASPACE
                                         "]},\"post_processor\":{\"type\":\"TemplateProcessing\","
                                         "\"single\":[" TEXT("A") "," END "],\"pair\":[" TEXT(
                                             "A") "," END
                                                  "," TEXT("B") "," END "],\"special_tokens\":{\"</"
                                                                "s>\":{\"id\":\"</"
                                                                "s>\",\"ids\":[1],"
                                                                "\"tokens\":[\"</s>\"]}}},"
                                                                "\"decoder\":" METASPACE
                                                                ",\"model\":{\"type\":\"Unigram\","
                                                                "\"unk_id\":2,"
                                                                "\"byte_fallback\":false,\"vocab\":"
                                                                "[[\"<pad>\",0.0],[\"</"
                                                                "s>\",0.0],[\"<unk>\",0.0]");
    for (size_t i = 0; i < t->n; i++) {
        tg_buf_puts(out, ",\n[");
        tg_part_write_str(out, t->pieces[i].text, t->pieces[i].len);
        tg_buf_printf(out, ",%.15g%s]", t->pieces[i].score,
                      t->pieces[i].score == floor(t->pieces[i].score) ? ".0" : "");
    }
    tg_buf_puts(out, "]}}");
}

static void write_config(tg_buf *out, const tg_unigram_train_options *o) {
    tg_buf_puts(out, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"eos_token\": "
                     "\"</s>\",\n  \"pad_token\": \"<pad>\",\n  \"unk_token\": \"<unk>\"");
    if (o->max_length)
        tg_buf_printf(out, ",\n  \"model_max_length\": %lld", (long long)o->max_length);
    tg_buf_puts(out, "\n}\n");
}

tg_status tg_unigram_train(const tg_unigram_trainer *u, const tg_unigram_train_options *o,
                           tg_tokenizer **out, tg_error *err) {
    *out = NULL;
    if (o->vocab_size <= SPECIALS || o->vocab_size > TG_VOCAB_MAX_ID || o->max_piece < 0 ||
        o->max_piece > MAX_WORD / 4 || o->max_seeds < 0)
        return tg_fail(err, TG_CONFIG,
                       "tokenizer training: a vocabulary of %lld with pieces of up to %lld "
                       "characters cannot be",
                       (long long)o->vocab_size, (long long)o->max_piece);
    if (!u->words.count) return tg_fail(err, TG_DATA, "tokenizer training: the text has no words");
    training t = {0};
    tg_buf json = {0}, config = {0};
    tg_status st = train(&t, u, o, err);
    if (st == TG_OK) {
        write_json(&json, &t);
        write_config(&config, o);
        if (json.failed || config.failed) st = tg_fail_nomem(err, json.len);
    }
    if (st == TG_OK) st = tg_tokenizer_parse(out, json.data, json.len, config.data, err);
    tg_free(t.words);
    tg_free(t.pieces);
    tg_free(t.weight);
    tg_free(t.expected);
    tg_trie_fini(&t.trie);
    tg_buf_fini(&json);
    tg_buf_fini(&config);
    return st;
}
