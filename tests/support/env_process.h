/* A real textgen-env process with keys, for tests: started, looked at over HTTP, stopped. */
#ifndef TG_TEST_ENV_PROCESS_H
#define TG_TEST_ENV_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct env_process {
    pid_t pid;
    char folder[200];  /* keys, list, logs */
    char address[128]; /* as the ready line says */
    char http[64];
    char out[256], log[256], allow[256];
} env_process;

/* Keys server, alice (client of a), bob (client of b), admin, worker (of w) and eve (in no list) in the folder;
 * the process listens on a free tcp port of loopback. extra: further arguments, NULL at the end. */
bool env_process_start(env_process *p, const char *name, const char *const *extra);
void env_process_stop(env_process *p);
/* "…/alice.key" */
const char *env_process_file(const env_process *p, const char *name);
/* Writes the allow-list with the lines of these keys only ("alice client a"), NULL at the end. */
bool env_process_allow(const env_process *p, const char *const *lines);
/* The value of a series at /metrics; -1: not there. */
double env_process_metric(const env_process *p, const char *series);
/* Waits until the series has at least this value. */
bool env_process_metric_reaches(const env_process *p, const char *series, double value, int ms);
/* The text of a file of the process (its log, a file of /proc/PID) for a search; false: cannot be read. */
bool env_process_file_contains(const char *path, const char *text, bool *found);

#endif
