/* Registries and the components that a config chooses from them. Read-only tables: no state, any
 * thread. */
#include "env-server/entry.h"

#include "common/base/alloc.h"
#include "common/base/str.h"

#include <string.h>

enum { MAX_ROWS = 256 };

const tg_entry *tg_registry_at(const tg_registry *r, size_t i) {
    size_t n = 0;
    for (; r->built[n]; n++)
        if (n == i) return r->built[n];
    for (size_t k = 0; r->planned[k].name; k++)
        if (n + k == i) return &r->planned[k];
    return NULL;
}

const tg_entry *tg_registry_find(const tg_registry *r, const char *name) {
    const tg_entry *e;
    for (size_t i = 0; (e = tg_registry_at(r, i)); i++)
        if (!strcmp(e->name, name)) return e;
    return NULL;
}

tg_status tg_state_open(void **state, size_t size, tg_open_fn *open, const void *options,
                        const tg_open_context *ctx, tg_error *err) {
    static const tg_open_context defaults = {0};
    void *s = *state = tg_alloc(size);
    if (!s) return tg_fail_nomem(err, size);
    tg_status st = open ? open(s, options, ctx ? ctx : &defaults, err) : TG_OK;
    if (st == TG_OK) return TG_OK;
    tg_free(s);
    *state = NULL;
    return st;
}

static tg_status unknown_id(const tg_registry *r, const tg_node *id, const char *path,
                            tg_error *err) {
    const char *names[MAX_ROWS];
    const tg_entry *e;
    size_t n = 0;
    while (n < MAX_ROWS && (e = tg_registry_at(r, n))) names[n++] = e->name;
    const char *nearest = tg_nearest(id->text, names, n);
    if (nearest)
        return tg_node_fail(id, path, err, "unknown %s '%s'; did you mean '%s'?", r->kind, id->text,
                            nearest);
    return tg_node_fail(id, path, err, "unknown %s '%s'; `textgen list %s` shows the known ones",
                        r->kind, id->text, r->kind);
}

/* Only `id` and `args` may stand in a section; unknown keys are answered by the option table. */
struct section {
    const char *id;
    const tg_node *args;
};
static const tg_opt section_options[] = {
    TG_OPT_ROW(struct section, id, TG_T_STR, TG_OPT_REQUIRED, NULL, 0, 0, NULL,
               "Name of the component."),
    TG_OPT_NODE(struct section, args, "Options of the component."), TG_OPT_END};

tg_status tg_choice_read(const tg_registry *r, const tg_node *section, const char *path,
                         tg_arena *arena, tg_choice *out, tg_error *err) {
    struct section s;
    *out = (tg_choice){.path = path, .file = section->file, .line = section->line};
    tg_status st = tg_opts_read(section_options, &s, section, path, arena, err);
    if (st != TG_OK) return st;
    tg_buf key = {0};
    tg_buf_printf(&key, "%s.id", path);
    char *id_path = tg_arena_strdup(arena, key.data ? key.data : "id");
    tg_buf_reset(&key);
    tg_buf_printf(&key, "%s.args", path);
    char *args_path = tg_arena_strdup(arena, key.data ? key.data : "args");
    tg_buf_fini(&key);
    if (!id_path || !args_path) return tg_fail_nomem(err, strlen(path) + 8);

    const tg_node *id = tg_node_get(section, "id");
    const tg_entry *e = tg_registry_find(r, s.id);
    if (!e) return unknown_id(r, id, id_path, err);
    out->entry = e;
    out->path = id_path;
    if (id) out->file = id->file, out->line = id->line;
    out->options = tg_arena_alloc(arena, e->options_size ? e->options_size : 1);
    if (!out->options) return tg_fail_nomem(err, e->options_size);
    /* Without args, a missing key is reported where the id stands. */
    tg_node none = {.kind = TG_NODE_MAP, .file = out->file, .line = out->line};
    const tg_node *args = tg_node_is_null(s.args) ? &none : s.args;
    return tg_opts_read(e->options, out->options, args, args_path, arena, err);
}

tg_status tg_choice_require_built(const tg_choice *c, tg_error *err) {
    if (!c->entry || c->entry->built) return TG_OK;
    if (c->file && c->line > 0)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s:%d: %s: '%s' is known but not built into this version", c->file, c->line,
                       c->path, c->entry->name);
    return tg_fail(err, TG_UNSUPPORTED, "%s: '%s' is known but not built into this version",
                   c->path, c->entry->name);
}

void tg_choice_json(const tg_choice *c, tg_buf *out) {
    if (!c->entry) {
        tg_buf_puts(out, "null");
        return;
    }
    tg_buf_puts(out, "{\"id\": ");
    tg_json_string(out, c->entry->name, strlen(c->entry->name));
    tg_buf_puts(out, ", \"args\": ");
    tg_opts_json(c->entry->options, c->options, out);
    tg_buf_putc(out, '}');
}
