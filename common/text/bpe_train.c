/* Training: words with their counts, the pairs in them with theirs, and a heap of pairs by count.
 *
 * Invariant: count[pair] is what the words hold now. The heap may hold old counts; an entry is corrected when it comes
 * up. A pair keeps the list of words it was ever seen in, so a merge visits only these. One thread. */
#include "common/text/bpe_train.h"

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/text/bpe_impl.h"
#include "common/text/bytelevel.h"
#include "common/text/tokenizer_impl.h"
#include "common/text/utf8.h"

#include <string.h>

struct tg_bpe_trainer {
    tg_map words; /* bytes -> count */
};

typedef struct word {
    int32_t *symbol;
    uint32_t n;
    int64_t count;
} word;

typedef struct pair {
    tg_bpe_pair ids;
    int64_t count;
    uint32_t *words; /* may name a word twice, or one that has lost the pair */
    size_t n, cap;
    size_t round; /* when it was last noted as fresh */
} pair;

typedef struct entry {
    int64_t count;
    uint32_t pair;
} entry;

typedef struct training {
    word *words;
    size_t n_words;
    int32_t *symbols; /* of all words */
    tg_map index;     /* tg_bpe_pair -> place in pairs */
    pair *pairs;
    size_t n_pairs, cap_pairs;
    entry *heap;
    size_t n_heap, cap_heap;
    tg_ids fresh;  /* pairs that have gained since the last merge */
    tg_buf *names; /* id -> token in the byte alphabet, growing */
    size_t n_names, cap_names;
    tg_bpe_pair *merges;
    size_t n_merges;
    tg_map ids; /* token -> id */
} training;

tg_status tg_bpe_trainer_create(tg_bpe_trainer **out, tg_error *err) {
    *out = tg_alloc(sizeof **out);
    return *out ? TG_OK : tg_fail_nomem(err, sizeof **out);
}

void tg_bpe_trainer_destroy(tg_bpe_trainer **b) {
    if (!*b) return;
    tg_map_fini(&(*b)->words);
    tg_free(*b);
    *b = NULL;
}

static bool count_line(tg_bpe_trainer *b, const char *s, size_t len) {
    for (size_t pos = 0; pos < len;) {
        size_t end = tg_bytelevel_next(s, len, pos);
        uint64_t count = 0;
        tg_map_get(&b->words, s + pos, end - pos, &count);
        if (!tg_map_set(&b->words, s + pos, end - pos, count + 1)) return false;
        pos = end;
    }
    return true;
}

tg_status tg_bpe_trainer_add(tg_bpe_trainer *b, const char *text, size_t len, tg_error *err) {
    tg_buf clean = {0};
    tg_utf8_append_lossy(&clean, text, len);
    bool ok = !clean.failed;
    for (size_t i = 0; ok && i < clean.len;) {
        const char *newline = memchr(clean.data + i, '\n', clean.len - i);
        size_t n = newline ? (size_t)(newline - (clean.data + i)) + 1 : clean.len - i;
        ok = count_line(b, clean.data + i, n);
        i += n;
    }
    tg_buf_fini(&clean);
    return ok ? TG_OK : tg_fail_nomem(err, len);
}

static void training_fini(training *t) {
    for (size_t i = 0; i < t->n_pairs; i++) tg_free(t->pairs[i].words);
    for (size_t i = 0; i < t->n_names; i++) tg_buf_fini(&t->names[i]);
    tg_free(t->words);
    tg_free(t->symbols);
    tg_map_fini(&t->index);
    tg_free(t->pairs);
    tg_free(t->heap);
    tg_ids_fini(&t->fresh);
    tg_free(t->names);
    tg_free(t->merges);
    tg_map_fini(&t->ids);
}

/* The id of a token, given to it when it is new; -1: out of memory. */
static int32_t name_id(training *t, const char *token, size_t len) {
    uint64_t id;
    if (tg_map_get(&t->ids, token, len, &id)) return (int32_t)id;
    if (t->n_names == t->cap_names) {
        size_t cap = t->cap_names ? 2 * t->cap_names : 512;
        tg_buf *p = tg_realloc_array(t->names, cap, sizeof *p);
        if (!p) return -1;
        t->names = p, t->cap_names = cap;
    }
    t->names[t->n_names] = (tg_buf){0};
    tg_buf_append(&t->names[t->n_names], token, len);
    bool ok = !t->names[t->n_names].failed && tg_map_set(&t->ids, token, len, t->n_names);
    if (ok) return (int32_t)t->n_names++;
    tg_buf_fini(&t->names[t->n_names]);
    return -1;
}

/* The pair's record, made when it is new; NULL: out of memory. */
static pair *find_pair(training *t, int32_t left, int32_t right) {
    tg_bpe_pair ids = {left, right};
    uint64_t at;
    if (tg_map_get(&t->index, (const char *)&ids, sizeof ids, &at)) return &t->pairs[at];
    if (t->n_pairs == t->cap_pairs) {
        size_t cap = t->cap_pairs ? 2 * t->cap_pairs : 1024;
        pair *p = tg_realloc_array(t->pairs, cap, sizeof *p);
        if (!p) return NULL;
        t->pairs = p, t->cap_pairs = cap;
    }
    if (!tg_map_set(&t->index, (const char *)&ids, sizeof ids, t->n_pairs)) return NULL;
    t->pairs[t->n_pairs] = (pair){.ids = ids};
    return &t->pairs[t->n_pairs++];
}

static bool add_count(training *t, int32_t left, int32_t right, int64_t change, uint32_t word_at) {
    pair *p = find_pair(t, left, right);
    if (!p) return false;
    p->count += change;
    if (change > 0 && p->round != t->n_merges + 1) {
        p->round = t->n_merges + 1;
        if (!tg_ids_push(&t->fresh, (int32_t)(p - t->pairs))) return false;
    }
    if (change < 0 || (p->n && p->words[p->n - 1] == word_at)) return true;
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 4;
        uint32_t *words = tg_realloc_array(p->words, cap, sizeof *words);
        if (!words) return false;
        p->words = words, p->cap = cap;
    }
    p->words[p->n++] = word_at;
    return true;
}

/* More frequent first, then smaller ids. */
static bool before(const training *t, entry a, entry b) {
    if (a.count != b.count) return a.count > b.count;
    tg_bpe_pair x = t->pairs[a.pair].ids, y = t->pairs[b.pair].ids;
    return x.left != y.left ? x.left < y.left : x.right < y.right;
}

static bool heap_push(training *t, entry e) {
    if (t->n_heap == t->cap_heap) {
        size_t cap = t->cap_heap ? 2 * t->cap_heap : 1024;
        entry *p = tg_realloc_array(t->heap, cap, sizeof *p);
        if (!p) return false;
        t->heap = p, t->cap_heap = cap;
    }
    size_t i = t->n_heap++;
    for (; i && before(t, e, t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = e;
    return true;
}

static entry heap_pop(training *t) {
    entry top = t->heap[0], last = t->heap[--t->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < t->n_heap; i = child) {
        if (child + 1 < t->n_heap && before(t, t->heap[child + 1], t->heap[child])) child++;
        if (!before(t, t->heap[child], last)) break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
    return top;
}

static bool push_fresh(training *t) {
    for (size_t i = 0; i < t->fresh.n; i++) {
        uint32_t at = (uint32_t)t->fresh.data[i];
        if (t->pairs[at].count > 0 && !heap_push(t, (entry){t->pairs[at].count, at})) return false;
    }
    t->fresh.n = 0;
    return true;
}

/* Ids of the special tokens, then of the bytes in order of their characters. */
static bool name_first(training *t, const tg_bpe_train_options *o) {
    for (size_t i = 0; i < o->n_special; i++)
        if (name_id(t, o->special[i], strlen(o->special[i])) < 0) return false;
    for (uint32_t cp = 0; cp <= 0x143; cp++) {
        char utf8[4];
        if (tg_bytelevel_byte(cp) >= 0 && name_id(t, utf8, tg_utf8_encode(cp, utf8)) < 0)
            return false;
    }
    return true;
}

static bool spell_words(training *t, const tg_bpe_trainer *b) {
    int32_t byte_id[256];
    for (int i = 0; i < 256; i++) {
        char utf8[4];
        unsigned n = tg_utf8_encode(tg_bytelevel_char((unsigned char)i), utf8);
        byte_id[i] = name_id(t, utf8, n);
    }
    size_t total = 0;
    for (size_t i = 0; i < b->words.count; i++) total += b->words.entries[i].key_len;
    t->words = tg_alloc_array(b->words.count + 1, sizeof *t->words);
    t->symbols = tg_alloc_array(total + 1, sizeof *t->symbols);
    if (!t->words || !t->symbols) return false;
    int32_t *next = t->symbols;
    for (size_t i = 0; i < b->words.count; i++) {
        const tg_map_entry *e = &b->words.entries[i];
        t->words[t->n_words++] = (word){next, (uint32_t)e->key_len, (int64_t)e->value};
        for (size_t k = 0; k < e->key_len; k++) *next++ = byte_id[(unsigned char)e->key[k]];
    }
    return true;
}

static bool count_pairs(training *t) {
    for (size_t i = 0; i < t->n_words; i++)
        for (uint32_t k = 0; k + 1 < t->words[i].n; k++) {
            const word *w = &t->words[i];
            if (!add_count(t, w->symbol[k], w->symbol[k + 1], w->count, (uint32_t)i)) return false;
        }
    return push_fresh(t);
}

/* Replaces the pair by id in one word and keeps the counts of its neighbours true. */
static bool merge_in_word(training *t, uint32_t at, tg_bpe_pair ids, int32_t id) {
    word *w = &t->words[at];
    int32_t *s = w->symbol;
    uint32_t out = 0;
    bool ok = true;
    for (uint32_t i = 0; i < w->n && ok; out++) {
        if (i + 1 >= w->n || s[i] != ids.left || s[i + 1] != ids.right) {
            s[out] = s[i++];
            continue;
        }
        if (out) {
            ok = add_count(t, s[out - 1], ids.left, -w->count, at);
            ok = ok && add_count(t, s[out - 1], id, w->count, at);
        }
        if (i + 2 < w->n) {
            ok = ok && add_count(t, ids.right, s[i + 2], -w->count, at);
            ok = ok && add_count(t, id, s[i + 2], w->count, at);
        }
        s[out] = id;
        i += 2;
    }
    w->n = out;
    return ok;
}

/* Merges the pair everywhere; pairs that arise go onto the heap. False: out of memory. */
static bool merge_pair(training *t, uint32_t at) {
    tg_bpe_pair ids = t->pairs[at].ids;
    tg_buf name = {0};
    tg_buf_append(&name, t->names[ids.left].data, t->names[ids.left].len);
    tg_buf_append(&name, t->names[ids.right].data, t->names[ids.right].len);
    int32_t id = name.failed ? -1 : name_id(t, name.data, name.len);
    tg_buf_fini(&name);
    if (id < 0) return false;
    t->merges[t->n_merges++] = ids;
    for (size_t i = 0; i < t->pairs[at].n; i++)
        if (!merge_in_word(t, t->pairs[at].words[i], ids, id)) return false;
    t->pairs[at].count = 0;
    return push_fresh(t);
}

static bool train(training *t, const tg_bpe_trainer *b, const tg_bpe_train_options *o) {
    t->merges = tg_alloc_array((size_t)o->vocab_size + 1, sizeof *t->merges);
    if (!t->merges || !name_first(t, o) || !spell_words(t, b) || !count_pairs(t)) return false;
    int64_t floor = o->min_frequency > 1 ? o->min_frequency : 1;
    while (t->n_heap && (int64_t)t->n_names < o->vocab_size) {
        entry e = heap_pop(t);
        int64_t now = t->pairs[e.pair].count;
        if (now < floor) continue;
        if (now == e.count ? !merge_pair(t, e.pair) : !heap_push(t, (entry){now, e.pair}))
            return false;
    }
    return true;
}

static void write_added(tg_buf *out, const training *t, const tg_bpe_train_options *o) {
    tg_buf_puts(out, "[");
    for (size_t i = 0; i < o->n_special; i++) {
        uint64_t id = 0;
        tg_map_get(&t->ids, o->special[i], strlen(o->special[i]), &id);
        tg_buf_printf(out, "%s{\"id\":%d,\"content\":", i ? "," : "", (int)id);
        tg_part_write_str(out, o->special[i], strlen(o->special[i]));
        tg_buf_puts(out,
                    ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
                    "\"special\":true}");
    }
    tg_buf_puts(out, "]");
}

/* GPT-2's tokenizer with this vocabulary, as a tokenizer.json. */
static void write_json(tg_buf *out, const training *t, const tg_bpe_train_options *o) {
    tg_buf_puts(out, "{\"version\":\"1.0\",\"added_tokens\":");
    write_added(out, t, o);
    tg_buf_puts(out, ",\"normalizer\":null,"
                     "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                     "\"trim_offsets\":true,\"use_regex\":true},"
                     "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                     "\"trim_offsets\":false,\"use_regex\":true},"
                     "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                     "\"trim_offsets\":true,\"use_regex\":true},"
                     "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (size_t i = 0; i < t->n_names; i++) {
        tg_buf_puts(out, i ? "," : "");
        tg_part_write_str(out, t->names[i].data, t->names[i].len);
        tg_buf_printf(out, ":%zu", i);
    }
    tg_buf_puts(out, "},\"merges\":[");
    for (size_t i = 0; i < t->n_merges; i++) {
        const tg_buf *left = &t->names[t->merges[i].left], *right = &t->names[t->merges[i].right];
        tg_buf_puts(out, i ? ",[" : "[");
        tg_part_write_str(out, left->data, left->len);
        tg_buf_putc(out, ',');
        tg_part_write_str(out, right->data, right->len);
        tg_buf_putc(out, ']');
    }
    tg_buf_puts(out, "]}}");
}

static void write_config(tg_buf *out, const tg_bpe_train_options *o) {
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token"};
    tg_buf_puts(out, "{\n  \"add_prefix_space\": false");
    for (size_t i = 0; o->n_special && i < 3; i++) {
        tg_buf_printf(out, ",\n  \"%s\": ", roles[i]);
        tg_part_write_str(out, o->special[0], strlen(o->special[0]));
    }
    if (o->max_length)
        tg_buf_printf(out, ",\n  \"model_max_length\": %lld", (long long)o->max_length);
    tg_buf_puts(out, ",\n  \"tokenizer_class\": \"GPT2Tokenizer\"\n}\n");
}

tg_status tg_bpe_train(const tg_bpe_trainer *b, const tg_bpe_train_options *o, tg_tokenizer **out,
                       tg_error *err) {
    *out = NULL;
    if (o->vocab_size < (int64_t)o->n_special + 256 || o->vocab_size > TG_VOCAB_MAX_ID)
        return tg_fail(err, TG_CONFIG,
                       "tokenizer training: a vocabulary of %lld is outside %zu..%d (256 bytes and "
                       "%zu special tokens)",
                       (long long)o->vocab_size, o->n_special + 256, TG_VOCAB_MAX_ID, o->n_special);
    training t = {0};
    tg_buf json = {0}, config = {0};
    tg_status st = train(&t, b, o) ? TG_OK : tg_fail_nomem(err, t.n_pairs * sizeof(pair));
    if (st == TG_OK) {
        write_json(&json, &t, o);
        write_config(&config, o);
        if (json.failed || config.failed) st = tg_fail_nomem(err, json.len);
    }
    training_fini(&t);
    if (st == TG_OK) st = tg_tokenizer_parse(out, json.data, json.len, config.data, err);
    tg_buf_fini(&json);
    tg_buf_fini(&config);
    return st;
}
