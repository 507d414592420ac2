/* Text on its way from the caller to the model, and where each byte of it came from.
 *
 * Stages of a tokenizer pass views on: a splitting stage narrows the view, a rewriting stage
 * (normaliser, prefix space) fills a tg_aligned and passes a view of that. A token over bytes [a,
 * b) of a view then lies at code points [at[a].start, at[b - 1].end) of the caller's text, whatever
 * was rewritten in between. */
#ifndef TG_TEXT_VIEW_H
#define TG_TEXT_VIEW_H

#include "common/base/buf.h"
#include "common/text/tokenizer.h"

typedef struct tg_view {
    const char *s; /* valid UTF-8 until a byte-level stage cuts it */
    size_t len;
    const tg_span *at; /* per byte of s; NULL when the caller wants no offsets */
} tg_view;

static inline tg_view tg_view_slice(tg_view v, size_t start, size_t end) {
    return (tg_view){v.s + start, end - start, v.at ? v.at + start : NULL};
}

/* Rewritten text. track says whether at is kept; zero-initialise, then tg_aligned_fini. */
typedef struct tg_aligned {
    tg_buf text;
    tg_spans at; /* empty unless track */
    bool track;
} tg_aligned;

void tg_aligned_reset(tg_aligned *a, bool track);
/* Appends len bytes that all stand for `from`. False: out of memory. */
bool tg_aligned_append(tg_aligned *a, const char *s, size_t len, tg_span from);
bool tg_aligned_append_view(tg_aligned *a, tg_view v);
tg_view tg_aligned_view(const tg_aligned *a);
void tg_aligned_fini(tg_aligned *a);

/* White space at both ends of the text that an added token took, when that is not its own text. */
typedef struct tg_strip {
    size_t at; /* place of its id */
    uint32_t leading, trailing;
} tg_strip;
typedef struct tg_strips {
    tg_strip *data;
    size_t n, cap;
} tg_strips;

/* Where a stage that produces tokens puts them. */
typedef struct tg_sink {
    tg_ids *ids;
    tg_spans *spans;   /* NULL: no offsets wanted */
    tg_strips *strips; /* in order of place; used only with spans */
} tg_sink;

/* False: out of memory. */
bool tg_sink_put(tg_sink *out, int32_t id, tg_span span);
/* Notes the white space of the token put last. */
bool tg_sink_strip(tg_sink *out, uint32_t leading, uint32_t trailing);

#endif
