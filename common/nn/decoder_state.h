/* What a decoder is made of: decoder_layout.c lays it out, decoder_source.c encodes sources and attends to them, decoder.c does the rest.
 * Private to these. */
#ifndef TG_NN_DECODER_STATE_H
#define TG_NN_DECODER_STATE_H

#include "common/nn/decoder.h"
#include "common/nn/kv_cache.h"
#include "common/nn/packed.h"

/* Of the encoder; in the place of the decoder's acts, which are not needed at the same time. E = work_rows() of sources. */
struct tg_decoder_encoder {
    tg_acts acts;                /* E rows */
    int32_t *tokens, *positions; /* (E) */
    tg_embed_acts embed;
    float *states, *mean, *rstd; /* (E,C), (E) after the final norm */
};

/* Device buffers, all in one block. W = work_rows(), S = caps.slots. */
struct tg_decoder_buffers {
    tg_kv_cache kv;
    float *src_k, *src_v;         /* (layers, S, src, G*D) */
    int32_t *src_begin, *src_end; /* (S) rows of the sources of a call's entries */
    int32_t *src_lengths;         /* (S) */
    struct tg_decoder_encoder enc;
    tg_acts acts;                /* W rows */
    int32_t *tokens, *positions; /* (W) */
    int32_t *offsets;            /* (S + 1) prefill */
    int32_t *slots, *lengths;    /* (S) step: lengths with the new token */
    int32_t *cache_rows; /* (S) step: where the new key goes; prefill: last row of each sequence */
    tg_embed_acts embed;
    float *last, *hidden, *mean, *rstd; /* (S,C), (S) */
    float *last_att; /* (S,H*D) causal: attention's results at prompts' last rows */
    float *logits;   /* (S,V) */
    float *value;    /* (S), or NULL */
};

struct tg_decoder {
    tg_model *m;
    tg_trunk trunk, enc; /* enc: seq2seq only */
    bool seq2seq;
    int n_slots, max_len, work_rows;
    int max_src, src_rows; /* 0: not seq2seq */
    void *block;
    struct tg_decoder_buffers b;
    uint64_t packed_version; /* of the model, when its weights were packed; 0: not yet */
    float *values;           /* (n_slots) of the last call's entries, or NULL */
    int32_t *lengths;        /* (n_slots) tokens held */
    int32_t *src_lengths;    /* (n_slots) tokens of its source; 0: none yet */
    uint64_t *source_of;     /* (n_slots) number of its source, of those encoded so far */
    uint64_t n_sources;
    int32_t *staging; /* (max(work_rows, src_rows, n_slots + 1)) host side of an upload */
    bool *seen;       /* (n_slots) scratch of the checks */
};

static inline size_t tg_decoder_kv_width(const tg_arch *a) {
    return (size_t)a->n_kv_heads * (size_t)a->head_dim;
}

/* Each slot is there, and once. */
tg_status tg_decoder_check_slots(tg_decoder *d, const int32_t *slots, int n,
                                 tg_error *err) TG_MUST_CHECK;
tg_status tg_decoder_check_tokens(const tg_trunk *t, const int32_t *tokens, int n,
                                  tg_error *err) TG_MUST_CHECK;
/* Each of 1 to max tokens; what: "prompt" or "source". */
tg_status tg_decoder_check_texts(const int32_t *offsets, int n, int max, const char *what,
                                 tg_error *err) TG_MUST_CHECK;
/* Tokens, positions and offsets of n texts. */
void tg_decoder_upload_texts(tg_decoder *d, const tg_trunk *t, int32_t *to_tokens,
                             int32_t *to_positions, const int32_t *tokens, const int32_t *offsets,
                             int n);

/* Seq2seq; nothing is done, or wrong, otherwise. The slots have sources: */
tg_status tg_decoder_check_sources(const tg_decoder *d, const int32_t *slots, int n,
                                   tg_error *err) TG_MUST_CHECK;
/* Where the sources of these slots lie. */
void tg_decoder_upload_sources(tg_decoder *d, const int32_t *slots, int n);
/* The layer's rows attend to the sources of n entries: N rows packed by b.offsets, or (step) one each. */
void tg_decoder_cross(tg_decoder *d, int layer, int N, int n, bool step);
/* `to` gets the source of `from`. */
void tg_decoder_fork_source(tg_decoder *d, int from, int to);

#endif
