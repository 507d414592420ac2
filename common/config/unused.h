/* Options that are accepted without effect (TG_OPT_IGNORED), so that configs of other programs work: a user who sets one is told. */
#ifndef TG_CONFIG_UNUSED_H
#define TG_CONFIG_UNUSED_H

#include "common/config/option.h"

/* Appends "note: file:line: path.key has no effect: why" for each such option that the section sets; section NULL: none. */
void tg_opts_unused(const tg_opt *table, const tg_node *section, const char *path, tg_buf *out);

#endif
