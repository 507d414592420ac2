/* How near this process is to the memory that it may have: the limit of its control group, with which the kernel would
 * end it rather than let an allocation fail. Whoever takes in newcomers looks here first. The loop's thread only. */
#ifndef TG_NET_MEMORY_LIMIT_H
#define TG_NET_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_memory_limit {
    char usage[512], stat[512]; /* files of the group; "" without a limit */
    uint64_t limit;
    uint64_t looked_ms;
    bool tight;
} tg_memory_limit;

/* Finds the group (version 2 or 1) below root, "/sys/fs/cgroup", from /proc/self/cgroup: the nearest one up from this
 * process that has a limit. groups is the text of that file. No limit, no group: never tight. */
void tg_memory_limit_init(tg_memory_limit *m, const char *root, const char *groups);
/* As above, with this process's own files. */
void tg_memory_limit_init_own(tg_memory_limit *m);
/* Whether more than four fifths are in use, what can be had back (cached files) apart. Looks at most ten times a second. */
bool tg_memory_limit_is_tight(tg_memory_limit *m, uint64_t now_ms);

#endif
