/* PARENT (Dhingra et al. 2019) and BLEU of ToTTo, on text prepared as ToTTo's scripts do it: lower
 * case, Moses's detokeniser, 13a words; three references, "<null>" where one is missing.
 *
 * A sample's table is meta's "raw_table": {"table", "highlighted_cells", "table_page_title",
 * "table_section_title", "table_section_text", "overlap_subset"}. */
#ifndef TG_ENV_TOTTO_H
#define TG_ENV_TOTTO_H

#include "common/base/status.h"
#include "env-server/metric/lcs.h"
#include "env-server/metric/metric.h"
#include "env-server/metric/words.h"

enum { TG_TOTTO_REFERENCES = 3 };

typedef struct tg_totto_span {
    size_t begin, end; /* in `ids` */
} tg_totto_span;

/* One sample as word ids; also the work space. Zeroed at first, reused freely. */
typedef struct tg_totto {
    bool compat; /* set by the caller: references are the table's own, as in RL4LMs */
    tg_words words;
    tg_wids ids;
    tg_totto_span prediction, references[TG_TOTTO_REFERENCES];
    tg_totto_span *entries; /* values of the table to be recalled */
    size_t n_entries, cap_entries;
    uint8_t *in_table; /* by word id: occurs in the whole table */
    size_t cap_in_table;
    bool overlap;
    tg_lcs lcs;
    tg_buf line, plain, split;
} tg_totto;

typedef struct tg_parent {
    double precision, recall, f;
} tg_parent;

/* RL4LMs writes texts to files, one a line; this one would not come back. */
bool tg_totto_breaks_lines(const char *text, size_t len);

tg_status tg_totto_read(tg_totto *t, const tg_metric_item *item, tg_error *err) TG_MUST_CHECK;
/* Of the sample that was read last: the reference with the best F. */
tg_status tg_totto_parent(tg_totto *t, tg_parent *out, tg_error *err) TG_MUST_CHECK;
void tg_totto_fini(tg_totto *t);

#endif
