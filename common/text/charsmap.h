/* SentencePiece's precompiled normalisation map: a double-array trie from character sequences to
 * places in a list of replacement strings (Yata's darts-clone layout), stored in base64.
 *
 * Applied as Hugging Face does: to each grapheme cluster of at most five bytes, else to each
 * character; the shortest key that the cluster starts with decides. */
#ifndef TG_TEXT_CHARSMAP_H
#define TG_TEXT_CHARSMAP_H

#include "common/text/scratch.h"

typedef struct tg_charsmap tg_charsmap;

/* where names the part for messages. */
tg_status tg_charsmap_read(tg_charsmap **out, const char *base64, const char *where,
                           tg_error *err) TG_MUST_CHECK;
void tg_charsmap_destroy(tg_charsmap **m);

/* Appends the normalised text to out when something changes (*changed). False: out of memory. */
bool tg_charsmap_run(const tg_charsmap *m, tg_point **points, size_t *cap, tg_view in,
                     tg_aligned *out, bool *changed);

/* The replacement of the longest key that s starts with, and the key's length in bytes; NULL: none. As SentencePiece
 * itself looks things up. */
const char *tg_charsmap_longest(const tg_charsmap *m, const char *s, size_t len, size_t *used);

#endif
