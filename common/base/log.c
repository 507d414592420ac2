#include "common/base/log.h"

#include "common/base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    tg_log_level level, stderr_level;
    bool started, json;
    FILE *file;
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = TG_LOG_INFO, .stderr_level = TG_LOG_DEBUG};

static const char *const level_names[] = {"ERROR", "WARN", "INFO", "DEBUG"};

/* Called with the lock held: the environment is read once, at the first use. */
static void start(void) {
    if (sink.started) return;
    sink.started = true;
    const char *wanted = getenv("TEXTGEN_LOG");
    for (int i = 0; wanted && i <= TG_LOG_DEBUG; i++) {
        if (!strcasecmp(wanted, level_names[i])) sink.level = (tg_log_level)i;
    }
}

void tg_log_set_level(tg_log_level level) {
    pthread_mutex_lock(&sink.lock);
    start();
    sink.level = level;
    pthread_mutex_unlock(&sink.lock);
}

void tg_log_set_stderr(tg_log_level level) {
    pthread_mutex_lock(&sink.lock);
    sink.stderr_level = level;
    pthread_mutex_unlock(&sink.lock);
}

void tg_log_set_json(bool json) {
    pthread_mutex_lock(&sink.lock);
    sink.json = json;
    pthread_mutex_unlock(&sink.lock);
}

tg_status tg_log_set_file(const char *path, tg_error *err) {
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (path && !file) return tg_fail_errno(err, TG_IO, "cannot open log file %s", path);
    pthread_mutex_lock(&sink.lock);
    if (sink.file) fclose(sink.file);
    sink.file = file;
    pthread_mutex_unlock(&sink.lock);
    return TG_OK;
}

bool tg_log_enabled(tg_log_level level) {
    pthread_mutex_lock(&sink.lock);
    start();
    bool on = level <= sink.level;
    pthread_mutex_unlock(&sink.lock);
    return on;
}

/* Text as the inside of a JSON string; what is not UTF-8 by its first byte is left to the reader. */
static void write_escaped(FILE *out, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
}

static void write_json(FILE *out, tg_log_level level, const char *area, const char *text) {
    static const char *const lower[] = {"error", "warn", "info", "debug"};
    struct timespec now;
    struct tm utc;
    char when[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(out, "{\"ts\": \"%s.%03ldZ\", \"level\": \"%s\", \"area\": \"%s\", \"msg\": \"", when,
            now.tv_nsec / 1000000, lower[level], area);
    write_escaped(out, text);
    fputs("\"}\n", out);
}

void tg_log(tg_log_level level, const char *area, const char *fmt, ...) {
    if (!tg_log_enabled(level)) return;
    char when[24], text[2048];
    tg_clock_text(when, sizeof when);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pthread_mutex_lock(&sink.lock);
    if (level <= sink.stderr_level) {
        if (sink.json)
            write_json(stderr, level, area, text);
        else
            fprintf(stderr, "%s [%s] %s: %s\n", when, level_names[level], area, text);
    }
    if (sink.file) { /* the line of Python's logging, which RL4LMs writes */
        static const char *const python[] = {"ERROR", "WARNING", "INFO", "DEBUG"};
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        fprintf(sink.file, "%s,%03ld [%s] %s: %s\n", when, now.tv_nsec / 1000000, python[level],
                area, text);
        fflush(sink.file);
    }
    pthread_mutex_unlock(&sink.lock);
}
