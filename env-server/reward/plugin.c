/* The reward plugin: a function in a shared library, through the interface of env-server/plugin/textgen_reward.h. What
 * the library says of itself is checked before anything of it is called. */
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "env-server/plugin/textgen_reward.h"
#include "env-server/reward/external.h"
#include "env-server/reward/rows.h"
#include "proto/limits.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHY = 512 };

struct options {
    tg_external_opts common;
    const char *path;
    const tg_node *config;
};
static const tg_opt options[] = {
    TG_OPT_STR_REQUIRED(struct options, path,
                        "Shared library; a name without / is searched as the linker does."),
    TG_OPT_NODE(struct options, config, "What the function is made from, given to it as JSON."),
    TG_OPT_EXTERNAL(struct options, "1"), TG_OPT_END};

struct state {
    tg_external x; /* first */
    void *library;
    const textgen_reward_plugin_info *info;
    void *instance;
};

/* ---- loading ------------------------------------------------------------------------------- */

static tg_status load(struct state *s, const char *path, tg_error *err) {
    s->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!s->library) return tg_fail(err, TG_CONFIG, "plugin: path: %.600s", dlerror());
    const textgen_reward_plugin_info *(*describe)(void);
    /* POSIX wants this detour from void * to a function. */
    *(void **)(&describe) = dlsym(s->library, "textgen_reward_plugin");
    if (!describe)
        return tg_fail(err, TG_CONFIG,
                       "plugin: %s has no textgen_reward_plugin(): it is not a reward plug-in "
                       "(env-server/plugin/example_reward.c is one)",
                       path);
    s->info = describe();
    return s->info ? TG_OK
                   : tg_fail(err, TG_CONFIG, "plugin: %s: textgen_reward_plugin() gave NULL", path);
}

static tg_status check_info(const textgen_reward_plugin_info *i, const char *path, tg_error *err) {
    const uint32_t known =
        TEXTGEN_REWARD_DETERMINISTIC | TEXTGEN_REWARD_PER_TOKEN | TEXTGEN_REWARD_THREAD_SAFE;
    if (i->size < offsetof(textgen_reward_plugin_info, name) || i->abi != TEXTGEN_REWARD_ABI)
        return tg_fail(err, TG_CONFIG,
                       "plugin: %s speaks version %u of the interface, this program %u: build it "
                       "again with textgen_reward.h",
                       path, i->size < offsetof(textgen_reward_plugin_info, name) ? 0 : i->abi,
                       TEXTGEN_REWARD_ABI);
    if (i->size < sizeof *i)
        return tg_fail(err, TG_CONFIG, "plugin: %s describes itself in %zu bytes, expected %zu",
                       path, i->size, sizeof *i);
    if (!i->create || !i->score || !i->destroy || !i->name || !i->version)
        return tg_fail(err, TG_CONFIG,
                       "plugin: %s: name, version, create, score and destroy must all be set",
                       path);
    if (i->flags & ~known)
        return tg_fail(err, TG_CONFIG, "plugin: %s sets unknown flags 0x%x", path,
                       i->flags & ~known);
    return TG_OK;
}

static tg_status make_instance(struct state *s, const char *config, tg_error *err) {
    char why[WHY] = "";
    s->instance = s->info->create(config, why, sizeof why);
    why[sizeof why - 1] = 0;
    return s->instance ? TG_OK
                       : tg_fail(err, TG_CONFIG, "plugin: %s: %s", s->info->name,
                                 *why ? why : "it could not be made, without a reason");
}

/* ---- calling ------------------------------------------------------------------------------- */

typedef struct call_memory {
    textgen_reward_item *items;
    const textgen_reward_item **item_list;
    textgen_reward_result *results;
    textgen_reward_result **result_list;
} call_memory;

static bool prepare(call_memory *m, const tg_score_call *c) {
    m->items = tg_arena_array(c->arena, c->n, sizeof *m->items);
    m->item_list = tg_arena_array(c->arena, c->n, sizeof *m->item_list);
    m->results = tg_arena_array(c->arena, c->n, sizeof *m->results);
    m->result_list = tg_arena_array(c->arena, c->n, sizeof *m->result_list);
    if (!m->items || !m->item_list || !m->results || !m->result_list) return false;
    for (size_t i = 0; i < c->n; i++) {
        const tg_score_item *t = &c->texts[i]->item;
        m->items[i] = (textgen_reward_item){.size = sizeof *m->items,
                                            .prompt = t->prompt,
                                            .completion = t->completion,
                                            .references = t->references,
                                            .n_references = t->n_references,
                                            .meta_json = t->meta_json,
                                            .n_tokens = c->texts[i]->n_tokens,
                                            .done = c->texts[i]->done};
        m->results[i].size = sizeof *m->results;
        m->item_list[i] = &m->items[i];
        m->result_list[i] = &m->results[i];
    }
    return true;
}

static tg_status take_components(const textgen_reward_result *from, tg_score_result *to,
                                 tg_arena *arena, tg_error *err) {
    if (from->n_components > TEXTGEN_REWARD_COMPONENTS)
        return tg_fail(err, TG_DATA, "it set %zu components, %d is the limit", from->n_components,
                       TEXTGEN_REWARD_COMPONENTS);
    tg_component *parts = tg_arena_array(arena, from->n_components + 1, sizeof *parts);
    if (!parts) return tg_fail_nomem(err, from->n_components * sizeof *parts);
    for (size_t i = 0; i < from->n_components; i++) {
        const textgen_reward_component *c = &from->components[i];
        if (!c->name || !*c->name || strnlen(c->name, TG_LIMIT_NAME + 1) > TG_LIMIT_NAME)
            return tg_fail(err, TG_DATA, "component %zu has no name, or one too long", i);
        parts[i] = (tg_component){c->name, c->value,
                                  isfinite(c->value) ? TG_REWARD_OK : TG_REWARD_INVALID};
    }
    to->components = parts, to->n_components = from->n_components;
    return TG_OK;
}

static tg_status take_result(textgen_reward_result *from, tg_score_result *to, tg_arena *arena,
                             tg_error *err) {
    from->message[sizeof from->message - 1] = 0;
    to->value = from->value;
    to->message = tg_arena_strdup(arena, from->message);
    if (!to->message) return tg_fail_nomem(err, sizeof from->message);
    switch (from->status) {
    case TEXTGEN_REWARD_OK: to->status = TG_REWARD_OK; break;
    case TEXTGEN_REWARD_FAILED: to->status = TG_REWARD_FAILED; break;
    case TEXTGEN_REWARD_NONE:
        to->status = TG_REWARD_INVALID;
        to->message = "the plug-in left this text without a result";
        return TG_OK;
    default:
        to->status = TG_REWARD_INVALID;
        to->message = "the plug-in set an unknown status";
        return TG_OK;
    }
    return take_components(from, to, arena, err);
}

static tg_status call(void *backend, int lane, const tg_score_call *c, tg_score_result *results,
                      tg_score_fault *fault, tg_error *err) {
    struct state *s = backend;
    call_memory m;
    char why[WHY] = "";
    (void)lane;
    (void)fault; /* a function in this process fails again */
    if (!prepare(&m, c)) return tg_fail_nomem(err, c->n * sizeof *m.results);
    int code =
        s->info->score(s->instance, m.item_list, c->n, c->ranked, m.result_list, why, sizeof why);
    why[sizeof why - 1] = 0;
    if (code)
        return tg_fail(err, TG_UNAVAILABLE, "%s",
                       *why ? why : "the plug-in failed, without a reason");
    tg_status st = TG_OK;
    for (size_t i = 0; i < c->n && st == TG_OK; i++)
        st = take_result(&m.results[i], &results[i], c->arena, err);
    return st;
}

static const tg_score_ops score_ops = {.call = call};

/* ---- life ---------------------------------------------------------------------------------- */

static void close_reward(void *state) {
    struct state *s = state;
    tg_external_close(&s->x);
    if (s->instance) s->info->destroy(s->instance);
    if (s->library) dlclose(s->library);
}

static tg_status start(struct state *s, const struct options *o, const char *config,
                       tg_error *err) {
    tg_external_opts common = o->common;
    common.deterministic = s->info->flags & TEXTGEN_REWARD_DETERMINISTIC;
    common.per_token = s->info->flags & TEXTGEN_REWARD_PER_TOKEN;
    if (!(s->info->flags & TEXTGEN_REWARD_THREAD_SAFE)) common.concurrency = 1;
    tg_buf identity = {0};
    tg_buf_printf(&identity, "plugin %s %s %s %s", o->path, s->info->name, s->info->version,
                  config);
    if (identity.failed) return tg_fail_nomem(err, identity.len);
    tg_status st = make_instance(s, config, err);
    if (st == TG_OK)
        st = tg_external_open(&s->x, &common, s->info->name, identity.data, &score_ops, s, err);
    tg_buf_fini(&identity);
    return st;
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    (void)ctx;
    tg_buf config = {0};
    if (tg_node_is_null(o->config))
        tg_buf_puts(&config, "{}");
    else
        tg_node_json(o->config, &config);
    tg_status st = config.failed ? tg_fail_nomem(err, config.len) : load(s, o->path, err);
    if (st == TG_OK) st = check_info(s->info, o->path, err);
    if (st == TG_OK) st = start(s, o, config.data, err);
    tg_buf_fini(&config);
    if (st != TG_OK) close_reward(s);
    return st;
}

const tg_reward_ops tg_reward_plugin =
    TG_EXTERNAL_OPS("plugin", "A C function in a shared library (env-server/plugin).");
