/* The rows of the registry, each defined in the file of its pool. */
#ifndef TG_ENV_DATAPOOL_ROWS_H
#define TG_ENV_DATAPOOL_ROWS_H

#include "env-server/datapool/datapool.h"

extern const tg_datapool_ops tg_datapool_dummy;
extern const tg_datapool_ops tg_datapool_imdb, tg_datapool_imdb_seq2seq;
extern const tg_datapool_ops tg_datapool_commongen, tg_datapool_totto;
extern const tg_datapool_ops tg_datapool_cnn_daily_mail, tg_datapool_xsum;
extern const tg_datapool_ops tg_datapool_narrative_qa;
extern const tg_datapool_ops tg_datapool_wmt16, tg_datapool_wmt14_processed_en_de,
    tg_datapool_wmt16newsonly, tg_datapool_iwslt2017en_de;
extern const tg_datapool_ops tg_datapool_crd3, tg_datapool_daily_dialog;
extern const tg_datapool_ops tg_datapool_tldr, tg_datapool_tldr_preference;
extern const tg_datapool_ops tg_datapool_jsonl, tg_datapool_csv, tg_datapool_tsv,
    tg_datapool_parquet, tg_datapool_text;

#endif
