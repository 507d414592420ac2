#include "learner/cli/gen_kwargs.h"

#include "common/base/check.h"

#include <string.h>

static const char name[] = "generation_kwargs";

static const char *value_word(const tg_opt *row) {
    switch (row->type) {
    case TG_T_BOOL: return "true|false";
    case TG_T_INT: return "N";
    case TG_T_FLOAT: return "X";
    default: return "VALUE";
    }
}

void tg_gen_kwargs_flags(tg_gen_kwargs *k, tg_flag *flags, size_t n) {
    flags[n++] = (tg_flag){"kwargs", TG_FLAG_STR, (void *)&k->text, "YAML",
                           "Several settings: \"{num_beams: 5, length_penalty: 2}\", or @FILE."};
    for (size_t i = 0; tg_gen_options[i].type != TG_T_END; i++) {
        const tg_opt *row = &tg_gen_options[i];
        TG_ASSERT(i < TG_GEN_KWARGS_MAX);
        if (row->flags & TG_OPT_IGNORED) continue;
        flags[n++] =
            (tg_flag){row->key, TG_FLAG_STR, (void *)&k->values[i], value_word(row), row->help};
    }
    flags[n] = (tg_flag){0};
}

/* As YAML; but white space at the ends of a text, which YAML would take off, was typed on purpose: in quotes. */
static void put_value(tg_buf *out, const char *value) {
    static const char white[] = " \t\n\r";
    const size_t len = strlen(value);
    const bool ends = len && (strchr(white, value[0]) || strchr(white, value[len - 1]));
    const char first = value[strspn(value, white)];
    if (ends && (!first || !strchr("[{\"'", first)))
        tg_json_string(out, value, len);
    else
        tg_buf_puts(out, value);
}

/* --key VALUE as key=VALUE. */
static tg_status set_flags(const tg_gen_kwargs *k, tg_arena *arena, tg_node *root, tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && tg_gen_options[i].type != TG_T_END; i++) {
        if (!k->values[i]) continue;
        tg_buf text = {0};
        tg_buf_printf(&text, "%s=", tg_gen_options[i].key);
        if (tg_gen_options[i].type == TG_T_NODE)
            put_value(&text, k->values[i]);
        else
            tg_buf_puts(&text, k->values[i]);
        st = text.failed ? tg_fail_nomem(err, text.len)
                         : tg_tree_override(arena, root, text.data, err);
        tg_buf_fini(&text);
    }
    return st;
}

tg_status tg_gen_kwargs_read(const tg_gen_kwargs *k, const tg_args *args, const char *folder,
                             tg_arena *arena, tg_gen_settings *out, tg_error *err) {
    const char *text = k->text ? k->text : "{}";
    tg_node *root;
    tg_status st = text[0] == '@'
                       ? tg_tree_load(arena, text + 1, &root, err)
                       : tg_tree_parse(arena, "--kwargs", text, strlen(text), &root, err);
    if (st == TG_OK && root->kind != TG_NODE_MAP)
        st = tg_node_fail(root, "--kwargs", err, "expected a section, such as {num_beams: 5}");
    if (st == TG_OK) st = set_flags(k, arena, root, err);
    for (size_t i = 0; st == TG_OK && i < args->n_overrides; i++)
        st = tg_tree_override(arena, root, args->overrides[i], err);
    const tg_node *all = root;
    if (st == TG_OK) st = tg_gen_model_defaults(&all, folder, arena, err);
    if (st == TG_OK) st = tg_gen_settings_read(out, all, name, arena, err);
    return st == TG_OK ? tg_gen_settings_supported(out, name, err) : st;
}
