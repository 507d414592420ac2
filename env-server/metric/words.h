/* Words as small numbers: every distinct word of the texts at hand gets an id, so that comparing,
 * counting and aligning work on integers.
 *
 *     tg_words w = {0};
 *     tg_wids ids = {0};
 *     tg_wids_push(&ids, tg_words_id(&w, "cat", 3));
 *     if (w.failed || ids.failed) ...          // out of memory somewhere above
 *
 * Failures are sticky: a caller checks once at the end. Not thread safe. */
#ifndef TG_ENV_METRIC_WORDS_H
#define TG_ENV_METRIC_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_wids {
    uint32_t *v; /* read-only, n of them */
    size_t n;
    bool failed;
    size_t cap; /* private */
} tg_wids;

void tg_wids_push(tg_wids *ids, uint32_t id);
bool tg_wids_reserve(tg_wids *ids, size_t cap); /* false: sets failed */
void tg_wids_reset(tg_wids *ids);               /* n 0; memory and failure kept */
void tg_wids_fini(tg_wids *ids);

typedef struct tg_words {
    size_t count; /* ids given so far: 0 .. count-1; read-only */
    bool failed;
    struct tg_word *entries; /* private */
    size_t cap;
    struct tg_word_slot *table;
    size_t table_size;
    char *bytes; /* of all words, end to end */
    size_t n_bytes, cap_bytes;
} tg_words;

/* The word's id, a new one for a new word (copied). 0 with failed set when out of memory. */
uint32_t tg_words_id(tg_words *w, const char *word, size_t len);
/* The same, faster, where `readable` bytes from the word on may be read. */
uint32_t tg_words_id_in(tg_words *w, const char *word, size_t len, size_t readable);
/* Is the word known? *id gets its number. */
bool tg_words_find(const tg_words *w, const char *word, size_t len, uint32_t *id);
const char *tg_words_text(const tg_words *w, uint32_t id,
                          size_t *len); /* until the next new word */
void tg_words_reset(tg_words *w);       /* forgets all words, keeps memory and failure */
void tg_words_fini(tg_words *w);

/* Appends the ids of the words of str.split(). */
void tg_words_split(tg_words *w, const char *text, size_t len, tg_wids *out);

#endif
