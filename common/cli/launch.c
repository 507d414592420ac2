#include "common/cli/launch.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/cli/process.h"
#include "common/cli/run_dir.h"
#include "common/cli/supervise.h"
#include "common/config/run_config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where learner and workers meet. */
typedef struct meeting {
    const char *flag;       /* the learner's: --bind or --connect */
    tg_buf learner, worker; /* addresses */
    int n_workers;          /* to be started here */
    char *socket_dir;       /* NULL: none was needed */
    int lock;
} meeting;

/* Workers of this machine reach a learner that listens on every interface by the loopback one. */
static void local_address(const char *bind, tg_buf *out) {
    const char *any = strstr(bind, "://*");
    if (!any) any = strstr(bind, "://0.0.0.0");
    if (any)
        tg_buf_printf(out, "%.*s://127.0.0.1%s", (int)(any - bind), bind, strrchr(bind, ':'));
    else
        tg_buf_puts(out, bind);
}

/* As the config's pool says; by default a socket in a private folder. Workers that listen elsewhere (pool.connect) are not
 * ours to start. */
static tg_status meeting_open(meeting *m, const tg_run_config *c, tg_error *err) {
    *m = (meeting){.flag = "--bind", .n_workers = (int)c->workers, .lock = -1};
    if (c->pool.bind) {
        tg_buf_puts(&m->learner, c->pool.bind);
        local_address(c->pool.bind, &m->worker);
    } else if (c->pool.connect) {
        m->flag = "--connect";
        m->n_workers = 0;
        tg_buf_puts(&m->learner, c->pool.connect);
    } else {
        tg_status st = tg_socket_dir_create(&m->socket_dir, &m->lock, err);
        if (st != TG_OK) return st;
        tg_buf_printf(&m->learner, "ipc://%s/pool", m->socket_dir);
        tg_buf_printf(&m->worker, "ipc://%s/pool", m->socket_dir);
    }
    return m->learner.failed || m->worker.failed ? tg_fail_nomem(err, 0) : TG_OK;
}

static void meeting_close(meeting *m, const char *name) {
    tg_error err;
    if (m->socket_dir && tg_dir_remove(m->socket_dir, &err) != TG_OK)
        fprintf(stderr, "%s: %s\n", name, err.msg);
    if (m->lock >= 0) close(m->lock);
    tg_free(m->socket_dir);
    tg_buf_fini(&m->learner);
    tg_buf_fini(&m->worker);
}

static tg_status supervise_at(const tg_launch *l, const meeting *m, const char *config, int *code,
                              tg_error *err) {
    char *learner = NULL, *env = NULL, *log = tg_path_join(l->run_dir, "workers.log");
    tg_status st = log ? tg_sibling_path("textgen-learner", &learner, err) : tg_fail_nomem(err, 0);
    if (st == TG_OK) st = tg_sibling_path("textgen-env", &env, err);
    if (st == TG_OK) {
        const char *learner_argv[9 + TG_LAUNCH_FLAGS] = {learner, l->command,     "--config",
                                                         config,  "--run-dir",    l->run_dir,
                                                         m->flag, m->learner.data};
        for (int i = 0; i < TG_LAUNCH_FLAGS && l->flags[i]; i++) learner_argv[8 + i] = l->flags[i];
        const char *env_argv[] = {env, "--config", config, "--connect", m->worker.data, NULL};
        st = tg_supervise(&(tg_run_plan){.name = l->name,
                                         .learner = learner_argv,
                                         .worker = env_argv,
                                         .n_workers = m->n_workers,
                                         .worker_log = log},
                          code, err);
    }
    tg_free(learner);
    tg_free(env);
    tg_free(log);
    return st;
}

tg_status tg_launch_run(const tg_launch *l, int *code, tg_error *err) {
    tg_run_config c = {0};
    meeting m = {.lock = -1};
    char *config = tg_path_join(l->run_dir, "config.json");
    tg_status st = config ? tg_run_config_load(&c, config, NULL, 0, err) : tg_fail_nomem(err, 0);
    if (st == TG_OK) st = meeting_open(&m, &c, err);
    if (st == TG_OK) {
        fprintf(stderr, "%s: run folder %s, %d worker%s\n", l->name, l->run_dir, m.n_workers,
                m.n_workers == 1 ? "" : "s");
        st = supervise_at(l, &m, config, code, err);
    }
    meeting_close(&m, l->name);
    tg_run_config_fini(&c);
    tg_free(config);
    return st;
}
