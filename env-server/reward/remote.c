/* The reward remote: a function of reward workers, in any language that speaks the wire protocol (the Python package has
 * one ready). */
#include "common/base/alloc.h"
#include "env-server/reward/external.h"
#include "env-server/reward/workers.h"
#include "env-server/reward/rows.h"

#include <string.h>

enum { MAX_ADDRESSES = 64 };

struct options {
    tg_external_opts common;
    const char *fn, *bind;
    const tg_node *connect;
    int64_t heartbeat_ms;
};
static const tg_opt options[] = {
    TG_OPT_STR_REQUIRED(struct options, fn, "Name of the function."),
    TG_OPT_NODE(struct options, connect, "Addresses of reward workers or brokers: one, or a list."),
    TG_OPT_STR(struct options, bind, NULL, "Address where reward workers dial in."),
    TG_OPT_INT(struct options, heartbeat_ms, "1000", 50, 600000,
               "Interval of heartbeats; three missed: lost."),
    TG_OPT_EXTERNAL(struct options, "8"),
    TG_EXTERNAL_BOOL(struct options, deterministic, "The same text always gets the same value."),
    TG_OPT_ROW_KEY("version", struct options, common.version, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0,
                   NULL, "Of the function; another one empties the cache of results."),
    TG_OPT_END};

struct state {
    tg_external x; /* first */
    tg_reward_workers *workers;
};

static tg_status call(void *backend, int lane, const tg_score_call *c, tg_score_result *results,
                      tg_score_fault *fault, tg_error *err) {
    (void)lane;
    return tg_reward_workers_call(((struct state *)backend)->workers, c, results, fault, err);
}

static void interrupt(void *backend) {
    tg_reward_workers_interrupt(((struct state *)backend)->workers);
}

static const tg_score_ops score_ops = {.call = call, .interrupt = interrupt};

static void close_reward(void *state) {
    struct state *s = state;
    tg_external_close(&s->x);
    tg_reward_workers_close(&s->workers);
}

static tg_status read_addresses(const tg_node *n, const char **out, size_t *count, tg_error *err) {
    if (tg_node_is_null(n)) return TG_OK;
    size_t items = n->kind == TG_NODE_LIST ? n->n_items : 1;
    for (size_t i = 0; i < items; i++) {
        const tg_node *item = n->kind == TG_NODE_LIST ? n->items[i] : n;
        if (item->kind != TG_NODE_SCALAR || *count == MAX_ADDRESSES)
            return tg_node_fail(item, "connect", err,
                                "expected ipc://PATH or tcp://HOST:PORT, or a list of at most %d",
                                MAX_ADDRESSES);
        out[(*count)++] = item->text;
    }
    return TG_OK;
}

static tg_status start(struct state *s, const struct options *o, const tg_open_context *ctx,
                       tg_error *err) {
    const char *addresses[MAX_ADDRESSES];
    tg_reward_workers_opts j = {.fn = o->fn,
                                .connect = addresses,
                                .bind = o->bind,
                                .heartbeat_ms = (int)o->heartbeat_ms,
                                .deterministic = o->common.deterministic,
                                .insecure = ctx->insecure,
                                .security = ctx->security};
    tg_status st = read_addresses(o->connect, addresses, &j.n_connect, err);
    if (st == TG_OK && !j.n_connect && !o->bind)
        st = tg_fail(err, TG_CONFIG,
                     "remote: give connect (where reward workers listen) or bind (where they dial "
                     "in)");
    if (st == TG_OK) st = tg_reward_workers_open(&s->workers, &j, err);
    return st;
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    tg_buf identity = {0};
    tg_status st = start(s, o, ctx, err);
    if (st == TG_OK) {
        tg_buf_printf(&identity, "remote %s %s", o->fn, o->common.version ? o->common.version : "");
        st = identity.failed
                 ? tg_fail_nomem(err, identity.len)
                 : tg_external_open(&s->x, &o->common, o->fn, identity.data, &score_ops, s, err);
    }
    tg_buf_fini(&identity);
    s->x.traits.remote = true;
    if (st != TG_OK) close_reward(s);
    return st;
}

const tg_reward_ops tg_reward_remote =
    TG_EXTERNAL_OPS("remote", "A function of reward workers, over the wire protocol.");
