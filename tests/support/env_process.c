#include "tests/support/env_process.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/http_get.h"
#include "common/net/keys.h"
#include "tests/support/tg_test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char config[] =
    "tokenizer: {model_name: tests/golden/env/tokenizer}\n"
    "reward_fn: {id: increasing_numbers, args: {min_tokens: 4}}\n"
    "datapool: {id: dummy_pool, args: {prompt: \"Hello the\", n_samples: 10}}\n"
    "env: {n_envs: 4, args: {max_prompt_length: 8, max_episode_length: 20, terminate_on_eos: "
    "true}}\n"
    "alg: {id: ppo}\n"
    "train_evaluation: {metrics: [{id: dates}]}\n";

const char *env_process_file(const env_process *p, const char *name) {
    static char paths[8][512];
    static int at;
    char *path = paths[at++ % 8];
    snprintf(path, sizeof *paths, "%s/%s", p->folder, name);
    return path;
}

bool env_process_allow(const env_process *p, const char *const *lines) {
    tg_buf text = {0};
    tg_error err = {0};
    tg_buf_puts(&text, "# a test\n");
    for (; *lines; lines++) {
        char name[32], key[TG_KEY_TEXT + 1], file[64];
        const char *rest = strchr(*lines, ' ');
        snprintf(name, sizeof name, "%.*s", (int)(rest - *lines), *lines);
        snprintf(file, sizeof file, "%s.pub", name);
        if (tg_key_public_read(key, env_process_file(p, file), &err) != TG_OK) return false;
        tg_buf_printf(&text, "%s%s\n", key, rest);
    }
    bool ok = tg_file_write_atomic(p->allow, text.data, text.len, &err) == TG_OK &&
              chmod(p->allow, 0644) == 0;
    tg_buf_fini(&text);
    return ok;
}

static bool make_keys(env_process *p) {
    static const char *const names[] = {"server", "alice", "bob", "admin", "worker", "eve"};
    static const char *const lines[] = {"alice client a", "bob client b", "admin admin ops",
                                        "worker worker w", NULL};
    tg_error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tg_key_pair pair;
        if (tg_key_pair_create(&pair, &err) != TG_OK ||
            tg_key_pair_write(&pair, env_process_file(p, names[i]), &err) != TG_OK) {
            printf("  %s\n", err.msg);
            return false;
        }
        tg_key_wipe(&pair, sizeof pair);
    }
    return env_process_allow(p, lines);
}

static void become(const env_process *p, const char *const *extra) {
    const char *build = getenv("BUILD"), *args[32];
    char program[300];
    snprintf(program, sizeof program, "%s/textgen-env", build ? build : "build");
    size_t n = 0;
    args[n++] = program;
    args[n++] = "--config", args[n++] = env_process_file(p, "c.yml");
    args[n++] = "--bind", args[n++] = "tcp://127.0.0.1:*";
    args[n++] = "--key", args[n++] = env_process_file(p, "server.key");
    args[n++] = "--allow", args[n++] = p->allow;
    args[n++] = "--http", args[n++] = "127.0.0.1:0";
    for (; extra && *extra; extra++) args[n++] = *extra;
    args[n] = NULL;
    int out = open(p->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int log = open(p->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(out, 1) < 0 || dup2(log, 2) < 0) _exit(126);
    execv(program, (char *const *)args);
    _exit(127);
}

/* The word behind `before` in a file, once it is there. */
static bool wait_word(const char *path, const char *before, char *out, size_t size) {
    for (int i = 0; i < 600; i++, usleep(50000)) {
        tg_buf text = {0};
        tg_error err;
        const char *at = tg_file_read(path, 1 << 20, &text, &err) == TG_OK && text.data
                             ? strstr(text.data, before)
                             : NULL;
        bool whole = at && strchr(at, '\n');
        if (whole)
            snprintf(out, size, "%.*s", (int)strcspn(at + strlen(before), " /\n"),
                     at + strlen(before));
        tg_buf_fini(&text);
        if (whole) return true;
    }
    return false;
}

bool env_process_start(env_process *p, const char *name, const char *const *extra) {
    tg_error err = {0};
    char word[100];
    memset(p, 0, sizeof *p);
    snprintf(p->folder, sizeof p->folder, "%s/%s", tg_test_tmpdir(), name);
    snprintf(p->allow, sizeof p->allow, "%s/allow.txt", p->folder);
    snprintf(p->out, sizeof p->out, "%s/out", p->folder);
    snprintf(p->log, sizeof p->log, "%s/log", p->folder);
    if (tg_dir_create(p->folder, &err) != TG_OK || !make_keys(p) ||
        tg_file_write_atomic(env_process_file(p, "c.yml"), config, strlen(config), &err) != TG_OK)
        return CHECK(!"the folder of the process cannot be made");
    p->pid = fork();
    if (p->pid == 0) become(p, extra);
    if (p->pid < 0 || !wait_word(p->out, "ready bind tcp://", word, sizeof word) ||
        !wait_word(p->log, "http://", p->http, sizeof p->http)) {
        tg_buf log = {0};
        if (tg_file_read(p->log, 1 << 20, &log, &err) == TG_OK)
            printf("  %s\n", log.data ? log.data : "");
        tg_buf_fini(&log);
        return CHECK(!"the process did not start");
    }
    snprintf(p->address, sizeof p->address, "tcp://%s", word);
    return true;
}

void env_process_stop(env_process *p) {
    int status = 0;
    if (p->pid <= 0) return;
    kill(p->pid, SIGTERM);
    for (int i = 0; i < 400; i++, usleep(50000)) {
        if (waitpid(p->pid, &status, WNOHANG) != p->pid) continue;
        tg_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, __FILE__, __LINE__,
                 "the server ended with status %x", (unsigned)status);
        p->pid = 0;
        return;
    }
    kill(p->pid, SIGKILL);
    waitpid(p->pid, &status, 0);
    p->pid = 0;
    CHECK(!"the server did not end");
}

double env_process_metric(const env_process *p, const char *series) {
    tg_buf page = {0};
    tg_error err = {0};
    int code = 0;
    double value = -1;
    if (tg_http_get(p->http, "/metrics", 10000, &code, &page, &err) == TG_OK && page.data) {
        size_t len = strlen(series);
        for (const char *line = page.data; line; line = strchr(line, '\n')) {
            if (*line == '\n') line++;
            if (!strncmp(line, series, len) && line[len] == ' ') value = atof(line + len);
        }
    } else {
        printf("  %s\n", err.msg);
    }
    tg_buf_fini(&page);
    return value;
}

bool env_process_metric_reaches(const env_process *p, const char *series, double value, int ms) {
    uint64_t end = tg_clock_ms() + (uint64_t)ms;
    do {
        if (env_process_metric(p, series) >= value) return true;
        usleep(20000);
    } while (tg_clock_ms() < end);
    return false;
}

bool env_process_file_contains(const char *path, const char *text, bool *found) {
    tg_buf bytes = {0};
    tg_error err;
    *found = false;
    bool ok = tg_file_read(path, (size_t)1 << 30, &bytes, &err) == TG_OK;
    if (ok && bytes.len) *found = memmem(bytes.data, bytes.len, text, strlen(text)) != NULL;
    tg_buf_fini(&bytes);
    return ok;
}
