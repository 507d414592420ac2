/* The reward process: a program in any language that reads requests as lines of JSON and answers each with one line
 * (score_json.h). Every lane has its own copy, started with the worker and started again when it ends, not more often
 * than the limit allows. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "env-server/reward/child.h"
#include "env-server/reward/external.h"
#include "env-server/reward/rows.h"
#include "env-server/reward/score_json.h"

#include <stdatomic.h>
#include <string.h>

struct options {
    tg_external_opts common;
    const tg_node *command;
    int64_t restarts, restart_window_ms, max_reply;
};
static const tg_opt options[] = {
    TG_OPT_NODE(struct options, command, "The program and its arguments: a list of strings."),
    TG_OPT_INT(struct options, restarts, "10", 0, 1000000,
               "Starts within restart_window_ms after which a copy is not started again."),
    TG_OPT_INT(struct options, restart_window_ms, "60000", 1, 86400000, "See restarts."),
    TG_OPT_INT(struct options, max_reply, "16777216", 64, 1 << 30, "Bytes of one answer."),
    TG_OPT_EXTERNAL(struct options, "1"),
    TG_OPT_EXTERNAL_KIND(struct options),
    TG_OPT_END};

/* One copy of the program. Its lane's thread only. */
typedef struct copy {
    tg_line_child child;
    uint64_t next_id;
    uint64_t window_ns; /* when the starts began to be counted */
    int64_t starts;
    tg_buf line, reply;
} copy;

struct state {
    tg_external x; /* first */
    char **argv;   /* owned, NULL-terminated */
    int64_t restarts;
    uint64_t window_ns;
    size_t max_reply;
    bool deterministic;
    atomic_bool stop;
    copy copies[TG_SCORE_LANES];
};

/* ---- calling ------------------------------------------------------------------------------- */

static tg_status start_copy(struct state *s, copy *k, tg_error *err) {
    uint64_t now = tg_clock_ns();
    if (k->child.group) return TG_OK;
    if (!k->starts || now - k->window_ns > s->window_ns) k->window_ns = now, k->starts = 0;
    if (k->starts > s->restarts)
        return tg_fail(err, TG_UNAVAILABLE,
                       "%s ended %lld times within %llu ms and is not started again for now",
                       s->argv[0], (long long)k->starts,
                       (unsigned long long)(s->window_ns / 1000000));
    k->starts++;
    k->child.name = s->argv[0];
    k->child.stop = &s->stop;
    return tg_line_child_start(&k->child, (const char *const *)s->argv, err);
}

/* Safe to ask again: nothing of the request reached the program, or asking twice is harmless. */
static tg_status call(void *backend, int lane, const tg_score_call *c, tg_score_result *results,
                      tg_score_fault *fault, tg_error *err) {
    struct state *s = backend;
    copy *k = &s->copies[lane];
    tg_status st = start_copy(s, k, err);
    if (st != TG_OK) {
        fault->retry = true;
        return st;
    }
    uint64_t id = k->next_id++;
    bool written = false;
    tg_buf_reset(&k->line);
    tg_score_json_write(&k->line, id, c);
    tg_buf_putc(&k->line, '\n');
    if (k->line.failed) return tg_fail_nomem(err, k->line.len);
    st = tg_line_child_ask(&k->child, k->line.data, k->line.len, c->deadline_ns, s->max_reply,
                           &k->reply, &written, err);
    if (st != TG_OK) {
        fault->retry = st == TG_UNAVAILABLE && (!written || s->deterministic);
    } else {
        st = tg_score_json_read(k->reply.data, k->reply.len, &id, c->n, results, c->arena, err);
        if (st != TG_DATA) return st;
    }
    tg_line_child_stop(&k->child); /* a late answer must not become the next one's */
    return st;
}

/* Programs that load a model take their time: they start with the worker. A failure is told by the first call. */
static void enter(void *backend, int lane) {
    struct state *s = backend;
    tg_error err = {0};
    if (start_copy(s, &s->copies[lane], &err) != TG_OK)
        tg_log_warn("reward", "process: %s", err.msg);
}

static void leave(void *backend, int lane) {
    copy *k = &((struct state *)backend)->copies[lane];
    tg_line_child_stop(&k->child);
    tg_buf_fini(&k->line);
    tg_buf_fini(&k->reply);
}

static void interrupt(void *backend) {
    atomic_store(&((struct state *)backend)->stop, true);
}

static const tg_score_ops score_ops = {
    .call = call, .enter = enter, .leave = leave, .interrupt = interrupt};

/* ---- life ---------------------------------------------------------------------------------- */

static void close_reward(void *state) {
    struct state *s = state;
    tg_external_close(&s->x);
    for (size_t i = 0; s->argv && s->argv[i]; i++) tg_free(s->argv[i]);
    tg_free(s->argv);
}

static tg_status read_command(struct state *s, const tg_node *list, tg_error *err) {
    if (tg_node_is_null(list) || list->kind != TG_NODE_LIST || !list->n_items)
        return tg_fail(err, TG_CONFIG,
                       "process: command: expected a list like [python3, judge.py, --fast]");
    s->argv = tg_alloc_array(list->n_items + 1, sizeof *s->argv);
    if (!s->argv) return tg_fail_nomem(err, list->n_items * sizeof *s->argv);
    for (size_t i = 0; i < list->n_items; i++) {
        const tg_node *item = list->items[i];
        if (item->kind != TG_NODE_SCALAR)
            return tg_node_fail(item, "command", err, "expected a string");
        if (!(s->argv[i] = tg_strdup(item->text))) return tg_fail_nomem(err, strlen(item->text));
    }
    return TG_OK;
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    (void)ctx;
    s->restarts = o->restarts;
    s->window_ns = (uint64_t)o->restart_window_ms * 1000000;
    s->max_reply = (size_t)o->max_reply;
    s->deterministic = o->common.deterministic;
    tg_buf identity = {0};
    tg_status st = read_command(s, o->command, err);
    if (st == TG_OK) {
        tg_buf_printf(&identity, "process %s ", o->common.version ? o->common.version : "");
        tg_node_json(o->command, &identity);
        st = identity.failed ? tg_fail_nomem(err, identity.len)
                             : tg_external_open(&s->x, &o->common, s->argv[0], identity.data,
                                                &score_ops, s, err);
    }
    tg_buf_fini(&identity);
    if (st != TG_OK) close_reward(s);
    return st;
}

const tg_reward_ops tg_reward_process =
    TG_EXTERNAL_OPS("process", "A program in any language that answers lines of JSON.");
