/* One loop, one thread; a uv_async ends it. */
#include "common/net/ops_thread.h"

#include "common/base/alloc.h"

#include <pthread.h>

struct tg_ops_thread {
    uv_loop_t loop;
    uv_async_t end;
    pthread_t thread;
    tg_ops *ops;
};

static void on_end(uv_async_t *async) {
    tg_ops_thread *t = async->data;
    tg_ops_close(&t->ops);
    uv_close((uv_handle_t *)async, NULL);
}

static void *run(void *arg) {
    tg_ops_thread *t = arg;
    uv_run(&t->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* Closes what was opened on a loop that nobody runs. */
static void close_loop(tg_ops_thread *t) {
    while (uv_run(&t->loop, UV_RUN_DEFAULT)) continue;
    uv_loop_close(&t->loop);
    tg_free(t);
}

tg_status tg_ops_thread_start(tg_ops_thread **out, const tg_ops_opts *opts,
                              const tg_ops_hooks *hooks, tg_error *err) {
    *out = NULL;
    tg_ops_thread *t = tg_alloc(sizeof *t);
    if (!t) return tg_fail_nomem(err, sizeof *t);
    if (uv_loop_init(&t->loop) != 0) {
        tg_free(t);
        return tg_fail(err, TG_UNAVAILABLE, "no event loop for operations");
    }
    uv_async_init(&t->loop, &t->end, on_end);
    t->end.data = t;
    tg_status st = tg_ops_open(&t->ops, &t->loop, opts, hooks, err);
    if (st == TG_OK && pthread_create(&t->thread, NULL, run, t) != 0)
        st = tg_fail_errno(err, TG_UNAVAILABLE, "no thread for operations");
    if (st != TG_OK) {
        on_end(&t->end);
        close_loop(t);
        return st;
    }
    *out = t;
    return TG_OK;
}

void tg_ops_thread_stop(tg_ops_thread **out) {
    tg_ops_thread *t = *out;
    if (!t) return;
    *out = NULL;
    uv_async_send(&t->end);
    pthread_join(t->thread, NULL);
    close_loop(t);
}
