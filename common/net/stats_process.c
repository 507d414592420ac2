/* What the system says about this process, as Prometheus's clients name it. Only files of /proc/self are
 * read, so it also works where the rest of /proc is hidden. */
#include "common/net/stats.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static bool read_line(const char *path, char *line, size_t size) {
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(line, (int)size, f);
    if (f) fclose(f);
    return ok;
}

uint64_t tg_process_rss(void) {
    char line[256];
    unsigned long long total, resident;
    if (!read_line("/proc/self/statm", line, sizeof line) ||
        sscanf(line, "%llu %llu", &total, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static long count_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    if (!d) return -1;
    long n = -1; /* its own */
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9 : 0;
}

/* Field 22 of stat: clock ticks from boot to start. The name in field 2 may hold anything but ends with ')'. */
static double start_time(void) {
    char line[1024], *at;
    if (!read_line("/proc/self/stat", line, sizeof line) || !(at = strrchr(line, ')'))) return 0;
    for (int field = 2; field < 22 && at; field++) {
        at = strchr(at + 1, ' ');
    }
    if (!at) return 0;
    double since_boot = strtod(at, NULL) / (double)sysconf(_SC_CLK_TCK);
    return seconds_of(CLOCK_REALTIME) - (seconds_of(CLOCK_BOOTTIME) - since_boot);
}

static void put(tg_buf *out, const char *name, const char *kind, const char *help, double value) {
    tg_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, kind, name,
                  value);
}

void tg_stats_write_process(tg_buf *out) {
    struct rlimit files;
    put(out, "process_cpu_seconds_total", "counter", "User and system time.",
        seconds_of(CLOCK_PROCESS_CPUTIME_ID));
    put(out, "process_resident_memory_bytes", "gauge", "Memory in use.", (double)tg_process_rss());
    put(out, "process_open_fds", "gauge", "Open file descriptors.", (double)count_fds());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        put(out, "process_max_fds", "gauge", "Most file descriptors allowed.",
            (double)files.rlim_cur);
    put(out, "process_start_time_seconds", "gauge", "Start of the process, since 1970.",
        start_time());
}
