/* One form for all programs: `textgen list` joins what its siblings print. */
#include "common/config/listing.h"

#include <string.h>

bool tg_kind_is(const char *kind, const char *given) {
    if (!given) return true;
    size_t n = strlen(kind);
    return !strncmp(given, kind, n) && (!given[n] || !strcmp(given + n, "s"));
}

static void put_text(tg_buf *out, const char *key, const char *text) {
    tg_buf_printf(out, "\"%s\": ", key);
    tg_json_string(out, text, strlen(text));
    tg_buf_puts(out, ", ");
}

void tg_listed_json(const tg_listed *row, size_t *n, tg_buf *out) {
    tg_buf_puts(out, (*n)++ ? ",\n {" : "[\n {");
    put_text(out, "kind", row->kind);
    put_text(out, "name", row->name);
    put_text(out, "summary", row->summary);
    tg_buf_printf(out, "\"built\": %s, \"options\": ", row->built ? "true" : "false");
    if (row->options)
        tg_opts_describe_json(row->options, out);
    else
        tg_buf_puts(out, "[]");
    tg_buf_putc(out, '}');
}
