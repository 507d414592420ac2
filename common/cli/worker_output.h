/* What a worker prints: cut into lines, each with the worker's number in the log file; error lines also on stderr. */
#ifndef TG_CLI_WORKER_OUTPUT_H
#define TG_CLI_WORKER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_worker_output {
    int fd;  /* non-blocking read end; -1 when closed */
    int log; /* borrowed */
    int index;
    char line[4096]; /* the line so far; a longer one is cut in two */
    size_t len;
} tg_worker_output;

void tg_worker_output_init(tg_worker_output *o, int index, int fd, int log); /* takes fd */
void tg_worker_output_read(tg_worker_output *o);                             /* what is there now */
void tg_worker_output_finish(tg_worker_output *o); /* the rest, and close */

#endif
