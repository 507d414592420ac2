/* The word table: open addressing over entries in order of first appearance.
 * Invariant: every entry holds the slot it stands in, so that a reset touches
 * only what was used. One thread at a time. */
#include "env-server/metric/words.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "env-server/reward/pytext.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* a and b hold all bytes of a word of up to 16, so that most comparisons never see the text. */
struct tg_word {
    uint64_t a, b;
    size_t at, len; /* in bytes */
    uint32_t slot;
};
typedef struct tg_word_slot {
    uint32_t tag; /* more of the hash: most of the others differ in it */
    uint32_t id;  /* + 1; 0: free */
} word_slot;

void tg_wids_reset(tg_wids *ids) {
    ids->n = 0;
}

bool tg_wids_reserve(tg_wids *ids, size_t cap) {
    if (cap <= ids->cap) return true;
    size_t wanted = ids->cap ? 2 * ids->cap : 128;
    if (wanted < cap) wanted = cap;
    uint32_t *v = tg_realloc_array(ids->v, wanted, sizeof *v);
    if (!v) {
        ids->failed = true;
        return false;
    }
    ids->v = v, ids->cap = wanted;
    return true;
}

void tg_wids_push(tg_wids *ids, uint32_t id) {
    if (ids->n == ids->cap && !tg_wids_reserve(ids, ids->n + 1)) return;
    ids->v[ids->n++] = id;
}

void tg_wids_fini(tg_wids *ids) {
    tg_free(ids->v);
    memset(ids, 0, sizeof *ids);
}

typedef struct key {
    uint64_t a, b, hash;
} key;

static inline uint64_t load8(const char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline uint64_t load4(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline key finish(uint64_t a, uint64_t b, size_t len) {
    uint64_t h = (a ^ len * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    return (key){a, b, (h ^ h >> 32 ^ b) * 0xd6e8feb86659fd93u};
}

/* The first 16 bytes, zeros behind a shorter word; of a longer one a hash. */
static inline key key_of(const char *word, size_t len) {
    uint64_t a = 0, b = 0;
    if (len > 16)
        a = tg_hash64(word, len);
    else if (len > 8)
        a = load8(word), b = load8(word + len - 8) >> 8 * (16 - len);
    else if (len >= 4)
        a = load4(word) | load4(word + len - 4) << 8 * (len - 4);
    else if (len)
        a = (uint64_t)(unsigned char)word[0] |
            (uint64_t)(unsigned char)word[len / 2] << 8 * (len / 2) |
            (uint64_t)(unsigned char)word[len - 1] << 8 * (len - 1);
    return finish(a, b, len);
}

/* The same where 16 bytes can be read, without a branch for every length. */
static inline key key_at(const char *word, size_t len) {
    if (len > 16) return key_of(word, len);
    size_t low = len < 8 ? len : 8, high = len - low;
    uint64_t a = load8(word) & UINT64_MAX >> 8 * (8 - low) % 64,
             b = high ? load8(word + 8) & UINT64_MAX >> 8 * (8 - high) : 0;
    return finish(len ? a : 0, b, len);
}

static inline size_t first_slot(uint64_t hash, size_t size) {
    return (size_t)(hash >> 32) & (size - 1);
}

static inline bool is_word(const tg_words *w, const struct tg_word *e, const key *k,
                           const char *word, size_t len) {
    return e->a == k->a && e->b == k->b && e->len == len &&
           (len <= 16 || !memcmp(w->bytes + e->at, word, len));
}

static bool grow_table(tg_words *w) {
    size_t size = w->table_size ? 2 * w->table_size : 512;
    word_slot *table = tg_alloc_array(size, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < w->count; i++) {
        const struct tg_word *e = &w->entries[i];
        uint64_t hash = finish(e->a, e->b, e->len).hash;
        size_t slot = first_slot(hash, size);
        while (table[slot].id) slot = (slot + 1) & (size - 1);
        table[slot] = (word_slot){(uint32_t)hash, (uint32_t)i + 1};
        w->entries[i].slot = (uint32_t)slot;
    }
    tg_free(w->table);
    w->table = table, w->table_size = size;
    return true;
}

static bool grow_entries(tg_words *w) {
    size_t cap = w->cap ? 2 * w->cap : 256;
    struct tg_word *entries =
        cap < UINT32_MAX ? tg_realloc_array(w->entries, cap, sizeof *entries) : NULL;
    if (!entries) return false;
    w->entries = entries, w->cap = cap;
    return true;
}

static bool grow_bytes(tg_words *w, size_t len) {
    if (w->n_bytes + len <= w->cap_bytes) return true;
    size_t cap = w->cap_bytes ? 2 * w->cap_bytes : 4096;
    if (cap < w->n_bytes + len) cap = w->n_bytes + len;
    char *bytes = tg_realloc_array(w->bytes, cap, 1);
    if (!bytes) return false;
    w->bytes = bytes, w->cap_bytes = cap;
    return true;
}

static inline uint32_t id_of(tg_words *w, const char *word, size_t len, const key *k) {
    if ((2 * w->count >= w->table_size && !grow_table(w)) ||
        (w->count == w->cap && !grow_entries(w)) || !grow_bytes(w, len)) {
        w->failed = true;
        return 0;
    }
    size_t slot = first_slot(k->hash, w->table_size);
    for (; w->table[slot].id; slot = (slot + 1) & (w->table_size - 1))
        if (w->table[slot].tag == (uint32_t)k->hash &&
            is_word(w, &w->entries[w->table[slot].id - 1], k, word, len))
            return w->table[slot].id - 1;
    uint32_t id = (uint32_t)w->count++;
    w->entries[id] = (struct tg_word){k->a, k->b, w->n_bytes, len, (uint32_t)slot};
    if (len) memcpy(w->bytes + w->n_bytes, word, len);
    w->n_bytes += len;
    w->table[slot] = (word_slot){(uint32_t)k->hash, id + 1};
    return id;
}

uint32_t tg_words_id(tg_words *w, const char *word, size_t len) {
    key k = key_of(word, len);
    return id_of(w, word, len, &k);
}

bool tg_words_find(const tg_words *w, const char *word, size_t len, uint32_t *id) {
    if (!w->count) return false;
    key k = key_of(word, len);
    for (size_t slot = first_slot(k.hash, w->table_size); w->table[slot].id;
         slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->entries[w->table[slot].id - 1], &k, word, len)) {
            *id = w->table[slot].id - 1;
            return true;
        }
    return false;
}

const char *tg_words_text(const tg_words *w, uint32_t id, size_t *len) {
    *len = w->entries[id].len;
    return w->bytes + w->entries[id].at;
}

void tg_words_reset(tg_words *w) {
    for (size_t i = 0; i < w->count; i++) w->table[w->entries[i].slot] = (word_slot){0};
    w->count = 0, w->n_bytes = 0;
}

void tg_words_fini(tg_words *w) {
    tg_free(w->entries);
    tg_free(w->table);
    tg_free(w->bytes);
    memset(w, 0, sizeof *w);
}

/* Does a space of str.split() stand at text[0]? ASCII is decided here. */
static inline bool space_at(const char *text, size_t len, size_t *bytes) {
    unsigned char c = (unsigned char)text[0];
    *bytes = 1;
    if (c < 0x80) return c <= ' ' && (c == ' ' || (c >= 0x09 && c <= 0x0D) || c >= 0x1C);
    return tg_py_isspace(tg_py_char(text, len, bytes));
}

/* The first byte from at on that is white space or beyond ASCII's visible characters. */
static inline size_t skip_visible(const char *text, size_t len, size_t at) {
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(' ');
    for (; at + 16 <= len; at += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(text + at));
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, space), x);
        unsigned stop = (unsigned)(_mm_movemask_epi8(low) | _mm_movemask_epi8(x));
        if (stop) return at + (size_t)__builtin_ctz(stop);
    }
#endif
    while (at < len && (unsigned char)text[at] > ' ' && (unsigned char)text[at] < 0x80) at++;
    return at;
}

bool tg_words_next(const char *text, size_t len, size_t *pos, const char **word, size_t *word_len) {
    size_t at = *pos, n;
    while (at < len && space_at(text + at, len - at, &n)) at += n;
    size_t start = at;
    for (;;) {
        at = skip_visible(text, len, at);
        if (at >= len || space_at(text + at, len - at, &n)) break;
        at += n;
    }
    *pos = at;
    *word = text + start, *word_len = at - start;
    return at > start;
}

void tg_words_split(tg_words *w, const char *text, size_t len, tg_wids *out) {
    size_t pos = 0, n;
    const char *word;
    while (tg_words_next(text, len, &pos, &word, &n)) {
        key k = (size_t)(word - text) + 16 <= len ? key_at(word, n) : key_of(word, n);
        tg_wids_push(out, id_of(w, word, n, &k));
    }
}
