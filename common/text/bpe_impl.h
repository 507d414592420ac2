/* Inside of the BPE model, shared by bpe.c (encoding) and bpe_read.c (loading and saving). */
#ifndef TG_TEXT_BPE_IMPL_H
#define TG_TEXT_BPE_IMPL_H

#include "common/text/bpe.h"
#include "common/text/trie.h"

/* left and right of a merge in one key; ids are below 2^24. Never 0 in use: stored as key + 1. */
typedef struct tg_bpe_slot {
    uint64_t key; /* 0: empty */
    uint32_t rank;
    int32_t id;
} tg_bpe_slot;

typedef struct tg_bpe_pair {
    int32_t left, right;
} tg_bpe_pair;

typedef struct tg_bpe {
    tg_text_model base;
    tg_bpe_slot *table; /* open addressing, mask + 1 slots */
    size_t mask;
    tg_bpe_pair *merges; /* by rank */
    size_t n_merges;
    bool byte_level, byte_fallback;
    int32_t byte_id[256]; /* -1: this byte (over characters: this ASCII character) has no token */
    int32_t fallback_id[256]; /* <0x00> …; -1: none */
    uint32_t *n_bytes;        /* id -> bytes it stands for */
    tg_map whole;             /* bytes -> id; only with ignore_merges over bytes */
    bool ignore_merges;       /* a piece that is a token is taken whole */
    bool fuse_unk;
    int32_t unk; /* token for a byte that has none; -1: such a byte is dropped */
    char *unk_token;
    tg_trie symbols;    /* text that is never cut nor merged (SentencePiece's own models) */
    char *symbols_json; /* as it was read; NULL: there are none */
} tg_bpe;

static inline uint64_t tg_bpe_key(int32_t left, int32_t right) {
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) + 1;
}

static inline size_t tg_bpe_hash(uint64_t key) {
    key *= 0x9e3779b97f4a7c15u;
    return (size_t)(key ^ key >> 32);
}

extern const tg_text_model_ops tg_bpe_ops;
void tg_bpe_destroy(tg_text_model *m);
void tg_bpe_write_json(const tg_text_model *m, tg_buf *out);

#endif
