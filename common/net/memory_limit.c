/* Files of the control group, read with fixed buffers: this is for moments without memory. */
#include "common/net/memory_limit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 100 };

static bool read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* "max" and whatever is no number is none. */
static bool read_number(const char *path, uint64_t *out) {
    char text[64], *end;
    if (!read_text(path, text, sizeof text)) return false;
    *out = strtoull(text, &end, 10);
    return end != text;
}

static bool join(char out[512], const char *folder, const char *name) {
    return (size_t)snprintf(out, 512, "%s/%s", folder, name) < 512;
}

/* A limit that no machine has is none: version 1 writes 2^63 less a page. */
static bool take(tg_memory_limit *m, const char *folder, const char *limit, const char *usage) {
    char path[512];
    uint64_t n;
    if (!join(path, folder, limit) || !read_number(path, &n) || n == 0 || n >> 60) return false;
    if (!join(m->usage, folder, usage) || !join(m->stat, folder, "memory.stat")) return false;
    m->limit = n;
    return true;
}

/* From the group up to the root; inside a container the path may be that of the host, and only the root is there. */
static bool climb(tg_memory_limit *m, const char *root, const char *group, size_t len, bool v1) {
    char folder[512];
    if ((size_t)snprintf(folder, sizeof folder, "%s%.*s", root, (int)len, group) >= sizeof folder)
        return false;
    for (size_t n = strlen(folder), least = strlen(root); n >= least; n--) {
        if (n > least && folder[n] != '/' && folder[n] != '\0') continue;
        folder[n] = '\0';
        if (v1 ? take(m, folder, "memory.limit_in_bytes", "memory.usage_in_bytes")
               : take(m, folder, "memory.max", "memory.current"))
            return true;
    }
    return false;
}

void tg_memory_limit_init(tg_memory_limit *m, const char *root, const char *groups) {
    char v1_root[256];
    *m = (tg_memory_limit){0};
    if ((size_t)snprintf(v1_root, sizeof v1_root, "%s/memory", root) >= sizeof v1_root) return;
    for (const char *line = groups; *line;) { /* id:controllers:path */
        size_t len = strcspn(line, "\n");
        const char *kind = memchr(line, ':', len);
        const char *path = kind ? memchr(kind + 1, ':', len - (size_t)(kind + 1 - line)) : NULL;
        if (path) {
            size_t rest = len - (size_t)(path + 1 - line);
            bool v1 = path - kind == 7 && !memcmp(kind, ":memory", 7), v2 = path == kind + 1;
            if ((v1 && climb(m, v1_root, path + 1, rest, true)) ||
                (v2 && climb(m, root, path + 1, rest, false)))
                return;
        }
        line += len + (line[len] == '\n');
    }
    m->usage[0] = '\0';
}

void tg_memory_limit_init_own(tg_memory_limit *m) {
    char groups[4096];
    if (!read_text("/proc/self/cgroup", groups, sizeof groups)) groups[0] = '\0';
    tg_memory_limit_init(m, "/sys/fs/cgroup", groups);
}

/* Cached files: they make room when it is needed. */
static uint64_t reclaimable(const char *path) {
    char text[4096];
    if (!read_text(path, text, sizeof text)) return 0;
    const char *at =
        strstr(text, "inactive_file "); /* both versions; the first is the group's own */
    return at ? strtoull(at + strlen("inactive_file "), NULL, 10) : 0;
}

bool tg_memory_limit_is_tight(tg_memory_limit *m, uint64_t now_ms) {
    uint64_t used;
    if (m->limit == 0 || (m->looked_ms && now_ms < m->looked_ms + LOOK_MS)) return m->tight;
    m->looked_ms = now_ms;
    if (!read_number(m->usage, &used)) return m->tight = false;
    uint64_t back = reclaimable(m->stat);
    return m->tight = used > back && used - back > m->limit / 5 * 4;
}
