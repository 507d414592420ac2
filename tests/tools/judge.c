/* A reward function for tests, well-behaved or not, until it is killed: `judge http MODE` prints its port, `judge remote
 * ADDRESS MODE` listens there, `judge dial ADDRESS MODE` joins a broker. */
#include "tests/support/http_judge.h"
#include "tests/support/reward_worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int mode_of(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

static int serve_http(const char *name) {
    static const char *const names[] = {"ok",     "error", "500",     "nan",     "never", "short",
                                        "hangup", "busy",  "teaches", "gateway", "long",  "html"};
    http_judge j;
    int mode = mode_of(names, 12, name);
    if (mode < 0 || !http_judge_start(&j, (http_mode)mode)) return 64;
    printf("ready %d\n", j.port);
    fflush(stdout);
    for (;;) pause();
}

static int serve_remote(const char *address, const char *name, bool listen) {
    static const char *const names[] = {"ok",    "error", "item", "nan", "never",
                                        "short", "twice", "die",  "busy"};
    int mode = mode_of(names, 9, name);
    reward_worker *w =
        mode < 0 ? NULL : reward_worker_start(address, listen, (judge_fault)mode, false);
    if (!w) return 64;
    printf("ready %s\n", reward_worker_address(w));
    fflush(stdout);
    for (;;) pause();
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "http")) return serve_http(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "remote")) return serve_remote(argv[2], argv[3], true);
    if (argc == 4 && !strcmp(argv[1], "dial")) return serve_remote(argv[2], argv[3], false);
    fprintf(stderr, "usage: judge http MODE | judge remote|dial ADDRESS MODE\n");
    return 64;
}
