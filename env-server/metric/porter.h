/* Porter's suffix stripping (M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980)
 * in the three variants that the metrics' reference implementations use. */
#ifndef TG_ENV_METRIC_PORTER_H
#define TG_ENV_METRIC_PORTER_H

#include <stddef.h>

typedef enum tg_porter_mode {
    TG_PORTER_NLTK,     /* with NLTK's extensions: its default; ROUGE, METEOR */
    TG_PORTER_ORIGINAL, /* as published in 1980; py-rouge */
    TG_PORTER_MARTIN    /* with the changes on Porter's web page */
} tg_porter_mode;

/* Stems word[0 .. len) in place and returns the new length. The word is lower case already and has
 * room for len + 1 bytes: a stem can be one longer ("hoping" is not, "i" + "z" + "e" may be).
 * Bytes that are no ASCII letters count as consonants, one each. */
size_t tg_porter_stem(char *word, size_t len, tg_porter_mode mode);

#endif
