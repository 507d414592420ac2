/* Texts in two languages, line by line: plain text, or the tagged files of WMT and IWSLT (.sgm, .xml,
 * train.tags.*), where a segment is <seg …>text</seg> or a line that is no tag. */
#ifndef TG_ENV_PARALLEL_H
#define TG_ENV_PARALLEL_H

#include "env-server/datapool/dataset.h"

typedef struct tg_parallel {
    const char *source, *target; /* languages: "en", "de" */
    int year; /* of a WMT data set: newstest of the year before is val, of the year test; 0: none */
} tg_parallel;

/* The pair's files of a split in a folder, or (is_file) of a prefix: "val" for val.en and val.de. Rows
 * are {"translation": {source: …, target: …}}. *out stays closed when there are none. TG_DATA: two
 * files that do not have the same number of segments. */
tg_status tg_parallel_open(const tg_parallel *p, const tg_place *place, tg_table *out,
                           tg_error *err) TG_MUST_CHECK;

/* Appends text with &amp; &lt; &gt; &quot; &apos; and &#…; replaced. */
void tg_xml_unescape(const char *text, size_t len, tg_buf *out);

#endif
