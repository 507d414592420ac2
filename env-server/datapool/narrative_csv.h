/* NarrativeQA's own files: qaps.csv (document_id, set, question, answer1, answer2, …) and the
 * summaries of the documents. */
#ifndef TG_ENV_NARRATIVE_CSV_H
#define TG_ENV_NARRATIVE_CSV_H

#include "env-server/datapool/datapool.h"
#include "env-server/datapool/table/table.h"

/* Rows of the split are {"question", "summary", "answers": [two]}. *out stays closed when the folder
 * has no qaps.csv. TG_NOINPUT: there are no summaries beside it. */
tg_status tg_narrative_csv_open(const char *root, tg_split split, tg_table *out,
                                tg_error *err) TG_MUST_CHECK;

#endif
