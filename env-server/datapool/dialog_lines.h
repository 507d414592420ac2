/* DailyDialog's own files: dialogues_train.txt with "__eou__" behind each utterance, and beside it
 * dialogues_act_train.txt and dialogues_emotion_train.txt with a number for each. */
#ifndef TG_ENV_DIALOG_LINES_H
#define TG_ENV_DIALOG_LINES_H

#include "env-server/datapool/datapool.h"
#include "env-server/datapool/table/table.h"

/* Rows are {"dialog": [texts], "act": [numbers], "emotion": [numbers]}. *out stays closed when the
 * folder has no such files. TG_DATA: the three files have different numbers of lines. */
tg_status tg_dialog_lines_open(const char *root, tg_split split, tg_table *out,
                               tg_error *err) TG_MUST_CHECK;

#endif
