/* Notes about options without effect. The row's help says why. */
#include "common/config/unused.h"

#include "common/base/str.h"

#include <string.h>

static const tg_opt *row_of(const tg_opt *table, const char *key) {
    for (; table->key; table++)
        if (!strcmp(table->key, key)) return table;
    return NULL;
}

/* Null, or what the option is anyway: False too where that is "false". */
static bool says_nothing(const tg_opt *row, const tg_node *n) {
    bool given;
    if (row->type == TG_T_BOOL && row->def && tg_node_bool(n, &given))
        return given == !strcmp(row->def, "true");
    return tg_node_is_null(n) ||
           (row->def && n->kind == TG_NODE_SCALAR && !strcmp(row->def, n->text));
}

/* The rows' help begins in different ways: all are read after "has no effect: ". */
static const char *reason(const char *help) {
    static const char *const known[] = {"No effect: ", "No effect, ", "Without effect: "};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tg_str_starts(help, known[i])) return help + strlen(known[i]);
    return help;
}

void tg_opts_unused(const tg_opt *table, const tg_node *section, const char *path, tg_buf *out) {
    if (!table || !section || section->kind != TG_NODE_MAP) return;
    for (size_t i = 0; i < section->n_items; i++) {
        const tg_node *n = section->items[i];
        const tg_opt *row = row_of(table, n->key);
        if (!row || !(row->flags & TG_OPT_IGNORED) || says_nothing(row, n)) continue;
        tg_buf_puts(out, "note: ");
        if (n->file && n->line)
            tg_buf_printf(out, "%s:%d: ", n->file, n->line);
        else if (n->file)
            tg_buf_printf(out, "%s: ", n->file);
        tg_buf_printf(out, "%s.%s has no effect: %s\n", path, n->key, reason(row->help));
    }
}
