/* The .story files of CNN/DailyMail: an article, then its highlights, each below a line
 * "@highlight". */
#ifndef TG_ENV_STORY_H
#define TG_ENV_STORY_H

#include "env-server/datapool/dataset.h"

/* A tg_dataset's native reader: .story files in train, val and test, or in cnn/stories and
 * dailymail/stories with lists of the splits' addresses, all_{train,val,test}.txt (also in
 * url_lists), whose SHA-1 are the files' names. Rows are {"text", "file", "folder"}. */
tg_status tg_stories_open(const tg_place *place, tg_table *out, tg_error *err);
bool tg_story_is(const json_t *row);
/* The article's lines joined by spaces, the highlights' by line ends; lines that end without a mark
 * get " .", as the hub's loader (version 3.0.0) does it. */
void tg_story_split(const char *text, tg_buf *article, tg_buf *highlights);

/* Lower-case hexadecimal SHA-1 of a text. */
void tg_sha1_hex(const char *text, size_t len, char out[41]);

#endif
