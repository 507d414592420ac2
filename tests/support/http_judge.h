/* A small HTTP server in this program that plays a reward function, well or badly. */
#ifndef TG_TEST_HTTP_JUDGE_H
#define TG_TEST_HTTP_JUDGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum http_mode {
    HTTP_OK,    /* the length of each completion */
    HTTP_ERROR, /* {"error": …} */
    HTTP_500,
    HTTP_NAN,
    HTTP_NEVER,
    HTTP_SHORT,     /* a result too few */
    HTTP_HANGUP,    /* closes in the middle of its answer */
    HTTP_BUSY_ONCE, /* 503 with Retry-After: 0 … once, then well */
    HTTP_TEACHES,   /* 429 once, then well */
    HTTP_GATEWAY,   /* 502 once, then well */
    HTTP_LONG,      /* an endless body */
    HTTP_HTML
} http_mode;

typedef struct http_judge {
    int listener, port;
    pthread_t thread;
    atomic_int mode, requests, connections, open; /* open: connections now */
    atomic_bool stop;
    char seen[4096]; /* the head of the last request */
} http_judge;

bool http_judge_start(http_judge *j, http_mode mode);
void http_judge_stop(http_judge *j);

#endif
