/* Encoding one piece by merging. Short pieces keep their pairs in a flat array that is scanned for
 * the lowest rank; long ones use a heap over a linked list, so that no input is quadratic. Both
 * merge in the same order. Read-only on the model; everything that changes is in the scratch. */
#include "common/text/bpe_impl.h"

#include "common/base/alloc.h"

#include "common/text/bytelevel.h"
#include "common/text/utf8.h"

#include <string.h>

enum { SHORT = 32 };
#define NO_RANK UINT32_MAX

static const tg_bpe_slot *find(const tg_bpe *b, int32_t left, int32_t right) {
    uint64_t key = tg_bpe_key(left, right);
    for (size_t i = tg_bpe_hash(key) & b->mask;; i = (i + 1) & b->mask) {
        if (b->table[i].key == key) return &b->table[i];
        if (!b->table[i].key) return NULL;
    }
}

static uint32_t rank_of(const tg_bpe *b, const tg_symbol *sym, size_t i, size_t n) {
    const tg_bpe_slot *m = i + 1 < n ? find(b, sym[i].id, sym[i + 1].id) : NULL;
    return m ? m->rank : NO_RANK;
}

/* Merges symbols in place; returns how many are left, in order from sym[0]. n <= SHORT. */
static size_t merge_short(const tg_bpe *b, tg_symbol *sym, size_t n) {
    uint32_t rank[SHORT];
    for (size_t i = 0; i < n; i++) rank[i] = rank_of(b, sym, i, n);
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (!n || rank[best] == NO_RANK) return n;
        sym[best].id = find(b, sym[best].id, sym[best + 1].id)->id;
        sym[best].len += sym[best + 1].len;
        n--;
        memmove(sym + best + 1, sym + best + 2, (n - best - 1) * sizeof *sym);
        memmove(rank + best + 1, rank + best + 2, (n - best - 1) * sizeof *rank);
        rank[best] = rank_of(b, sym, best, n);
        if (best) rank[best - 1] = rank_of(b, sym, best - 1, n);
    }
}

static bool before(tg_merge_candidate a, tg_merge_candidate b) {
    return a.rank != b.rank ? a.rank < b.rank : a.pos < b.pos;
}

static void heap_push(tg_merge_candidate *h, size_t *n, tg_merge_candidate c) {
    size_t i = (*n)++;
    for (; i && before(c, h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = c;
}

static tg_merge_candidate heap_pop(tg_merge_candidate *h, size_t *n) {
    tg_merge_candidate top = h[0], last = h[--*n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= *n) break;
        if (child + 1 < *n && before(h[child + 1], h[child])) child++;
        if (!before(h[child], last)) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = last;
    return top;
}

static void propose(const tg_bpe *b, const tg_symbol *sym, int32_t pos, tg_merge_candidate *h,
                    size_t *n) {
    if (pos < 0 || sym[pos].next < 0) return;
    const tg_bpe_slot *m = find(b, sym[pos].id, sym[sym[pos].next].id);
    if (m) heap_push(h, n, (tg_merge_candidate){m->rank, (uint32_t)pos, m->id});
}

/* The same for any n. A candidate whose symbols have changed since it was proposed is stale and
 * dropped: spans only grow, so the pair at a position is unchanged exactly when it still merges to
 * the same token by the same rank. */
static size_t merge_long(const tg_bpe *b, tg_symbol *sym, size_t n, tg_merge_candidate *heap) {
    size_t n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        sym[i].prev = (int32_t)i - 1;
        sym[i].next = i + 1 < n ? (int32_t)i + 1 : -1;
    }
    for (size_t i = 0; i < n; i++) propose(b, sym, (int32_t)i, heap, &n_heap);
    while (n_heap) {
        tg_merge_candidate c = heap_pop(heap, &n_heap);
        tg_symbol *left = &sym[c.pos];
        if (left->len == 0 || left->next < 0) continue;
        tg_symbol *right = &sym[left->next];
        const tg_bpe_slot *m = find(b, left->id, right->id);
        if (!m || m->rank != c.rank) continue;
        left->id = m->id;
        left->len += right->len;
        right->len = 0;
        left->next = right->next;
        if (left->next >= 0) sym[left->next].prev = (int32_t)c.pos;
        propose(b, sym, left->prev, heap, &n_heap);
        propose(b, sym, (int32_t)c.pos, heap, &n_heap);
    }
    size_t kept = 0;
    for (int32_t i = n ? 0 : -1; i >= 0;) {
        int32_t next = sym[i].next;
        sym[kept++] = sym[i];
        i = next;
    }
    return kept;
}

static bool reserve(tg_scratch *s, size_t n) {
    if (n > s->symbols_cap) {
        tg_symbol *sym = tg_realloc_array(s->symbols, n, sizeof *sym);
        if (!sym) return false;
        s->symbols = sym, s->symbols_cap = n;
    }
    if (n <= SHORT || 3 * n <= s->heap_cap) return true;
    tg_merge_candidate *heap = tg_realloc_array(s->heap, n, 3 * sizeof *heap);
    if (!heap) return false;
    s->heap = heap, s->heap_cap = 3 * n;
    return true;
}

/* Length of a byte in the printable alphabet's UTF-8. */
static uint32_t name_len(unsigned char byte) {
    return tg_bytelevel_char(byte) < 0x80 ? 1 : 2;
}

/* One symbol a byte. A byte without token becomes unk or nothing; then *odd is set and lengths are
 * counted in the printable alphabet, as Hugging Face counts them (it matters for offsets only).
 * Returns the number of symbols. */
static size_t first_symbols(const tg_bpe *b, tg_view piece, tg_symbol *sym, bool *odd) {
    const unsigned char *p = (const unsigned char *)piece.s;
    size_t n = 0;
    *odd = false;
    for (size_t i = 0; i < piece.len; i++) {
        int32_t id = b->byte_id[p[i]];
        if (id < 0) *odd = true;
        sym[n++] = (tg_symbol){.id = id, .len = 1};
    }
    if (!*odd) return n;
    n = 0;
    bool fused = false; /* the last symbol is an unk that may take more */
    for (size_t i = 0; i < piece.len; i++) {
        int32_t id = b->byte_id[p[i]];
        uint32_t len = name_len(p[i]);
        if (id < 0 && fused)
            sym[n - 1].len += len;
        else if (id >= 0 || b->unk >= 0)
            sym[n++] = (tg_symbol){.id = id >= 0 ? id : b->unk, .len = len};
        fused = id < 0 && b->unk >= 0 && b->fuse_unk;
    }
    return n;
}

static bool has_bytes(const tg_bpe *b, const char *s, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (b->fallback_id[(unsigned char)s[i]] < 0) return false;
    return b->byte_fallback;
}

/* Puts the stretch of *len unknown bytes that waits for more, if there is one. */
static size_t put_unknown(const tg_bpe *b, tg_symbol *sym, size_t n, uint32_t *len) {
    if (*len) sym[n++] = (tg_symbol){.id = b->unk, .len = *len};
    *len = 0;
    return n;
}

/* One symbol a character. One without a token becomes its bytes, unk or nothing, and *odd is set.
 * An unk that waits for more stays behind bytes that follow it, as in Hugging Face. */
static size_t first_chars(const tg_bpe *b, tg_view piece, tg_symbol *sym, bool *odd) {
    size_t n = 0;
    uint32_t unk = 0; /* bytes of the unk that waits */
    *odd = false;
    for (size_t i = 0; i < piece.len;) {
        unsigned len;
        uint32_t cp = tg_utf8_at(piece.s + i, &len);
        size_t whole =
            b->symbols_json ? tg_trie_longest(&b->symbols, piece.s + i, piece.len - i) : 0;
        int32_t id = cp < 0x80 ? b->byte_id[cp] : tg_vocab_id(&b->base.vocab, piece.s + i, len);
        if (whole) { /* a number that no merge knows */
            *odd = true;
            n = put_unknown(b, sym, n, &unk);
            len = (unsigned)whole;
            sym[n++] =
                (tg_symbol){.id = ~tg_vocab_id(&b->base.vocab, piece.s + i, whole), .len = len};
        } else if (id >= 0) {
            n = put_unknown(b, sym, n, &unk);
            sym[n++] = (tg_symbol){.id = id, .len = len};
        } else if (has_bytes(b, piece.s + i, len)) {
            *odd = true;
            for (unsigned k = 0; k < len; k++)
                sym[n++] = (tg_symbol){b->fallback_id[(unsigned char)piece.s[i + k]], 0, 0, 1};
        } else {
            *odd = true;
            if (!b->fuse_unk) n = put_unknown(b, sym, n, &unk);
            if (b->unk >= 0) unk += len;
        }
        i += len;
    }
    return put_unknown(b, sym, n, &unk);
}

static tg_span span_of(tg_view piece, size_t start, size_t end) {
    return piece.at ? (tg_span){piece.at[start].start, piece.at[end - 1].end} : (tg_span){0};
}

/* Walks a piece and its printable form together; positions asked for must not go back. */
typedef struct cursor {
    size_t byte,
        end; /* end of that byte's character in the printable form; 0 before the first move */
} cursor;

static size_t byte_at(cursor *c, tg_view piece, size_t name_pos) {
    if (!c->end) c->end = name_len((unsigned char)piece.s[0]);
    while (c->end <= name_pos && c->byte + 1 < piece.len)
        c->end += name_len((unsigned char)piece.s[++c->byte]);
    return c->byte;
}

static bool put_odd(tg_view piece, const tg_symbol *sym, size_t n, tg_sink *out) {
    cursor c = {0};
    size_t pos = 0;
    for (size_t i = 0; i < n; pos += sym[i++].len) {
        size_t first = byte_at(&c, piece, pos), last = byte_at(&c, piece, pos + sym[i].len - 1);
        if (!tg_sink_put(out, sym[i].id, span_of(piece, first, last + 1))) return false;
    }
    return true;
}

static bool put_ids(const tg_bpe *b, tg_view piece, const int32_t *ids, size_t n, tg_sink *out) {
    if (!tg_ids_reserve(out->ids, n)) return false;
    memcpy(out->ids->data + out->ids->n, ids, n * sizeof *ids);
    out->ids->n += n;
    if (!out->spans) return true;
    for (size_t i = 0, pos = 0; i < n; pos += b->n_bytes[ids[i++]])
        if (!tg_spans_push(out->spans, span_of(piece, pos, pos + b->n_bytes[ids[i]]))) return false;
    return true;
}

static tg_status encode(const tg_text_model *m, tg_scratch *s, tg_view piece, tg_sink *out,
                        tg_error *err) {
    const tg_bpe *b = (const tg_bpe *)m;
    if (!piece.len) return TG_OK;
    tg_wordcache_entry *slot = NULL;
    if (piece.len <= TG_WORDCACHE_MAX_WORD) {
        bool hit;
        slot = tg_wordcache_find(s->words, piece.s, piece.len, &hit);
        if (hit)
            return put_ids(b, piece, slot->ids, slot->n, out) ? TG_OK : tg_fail_nomem(err, slot->n);
    }
    uint64_t whole;
    const tg_map *words = b->byte_level ? &b->whole : &m->vocab.ids;
    if (b->ignore_merges && tg_map_get(words, piece.s, piece.len, &whole)) {
        int32_t id = (int32_t)whole;
        if (slot) tg_wordcache_put(slot, piece.s, piece.len, &id, 1);
        return put_ids(b, piece, &id, 1, out) ? TG_OK : tg_fail_nomem(err, 1);
    }
    if (piece.len > INT32_MAX / 4 || !reserve(s, piece.len))
        return tg_fail_nomem(err, piece.len * sizeof(tg_symbol));
    bool odd;
    size_t n = b->byte_level ? first_symbols(b, piece, s->symbols, &odd)
                             : first_chars(b, piece, s->symbols, &odd);
    n = n <= SHORT ? merge_short(b, s->symbols, n) : merge_long(b, s->symbols, n, s->heap);
    if (odd && b->byte_level)
        return put_odd(piece, s->symbols, n, out) ? TG_OK : tg_fail_nomem(err, n);
    size_t start = out->ids->n;
    for (size_t i = 0, pos = 0; i < n; pos += s->symbols[i++].len)
        if (!tg_sink_put(out, s->symbols[i].id < 0 ? ~s->symbols[i].id : s->symbols[i].id,
                         span_of(piece, pos, pos + s->symbols[i].len)))
            return tg_fail_nomem(err, n);
    if (slot && !odd) tg_wordcache_put(slot, piece.s, piece.len, out->ids->data + start, n);
    return TG_OK;
}

const tg_text_model_ops tg_bpe_ops = {"BPE", encode, tg_bpe_write_json, tg_bpe_destroy};
