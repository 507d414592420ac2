/* Whether a text holds a date such as 2026-11-16. Used by the reward `sentences_with_dates` and the
 * metric `dates`. */
#ifndef TG_ENV_DATES_H
#define TG_ENV_DATES_H

#include <stdbool.h>
#include <stddef.h>

/* Python's re.search(r"\d{4}-\d{2}-\d{2}", text): digits of any script, also inside longer runs. */
bool tg_date_in_text(const char *text, size_t len);

#endif
