/* Texts as Python shows them. RL4LMs hands some metrics a list of references where one text is
 * expected, and Python turns it into its repr: "['A boy runs.']". */
#ifndef TG_ENV_METRIC_PYREPR_H
#define TG_ENV_METRIC_PYREPR_H

#include "common/base/buf.h"

#include <stddef.h>

/* repr() of one str: quotes, \n, \t, \r, \\, and \x, \u, \U for what is not printable. */
void tg_py_repr(tg_buf *out, const char *text, size_t len);
/* str() of a list of str. */
void tg_py_repr_list(tg_buf *out, const char *const *texts, size_t n);

#endif
