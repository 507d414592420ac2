/* Everything here runs inside a handler: only what POSIX calls async-signal-safe. The system knows which file is mapped at an address. */
#include "common/base/lost_file.h"

#include "common/base/file.h"
#include "common/base/status.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static void (*ending)(int exit_code);
static atomic_flag begun = ATOMIC_FLAG_INIT;

struct reader {
    int fd;
    size_t at, n;
    char piece[1024];
};

/* -1: the end. */
static int next_char(struct reader *r) {
    if (r->at == r->n) {
        const ssize_t n = read(r->fd, r->piece, sizeof r->piece);
        r->at = 0;
        r->n = n > 0 ? (size_t)n : 0;
    }
    return r->n ? (unsigned char)r->piece[r->at++] : -1;
}

/* Up to the character behind it. */
static uintptr_t read_hex(struct reader *r) {
    uintptr_t value = 0;
    for (int c; (c = next_char(r)) >= 0;) {
        if (c >= '0' && c <= '9')
            value = value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            break;
    }
    return value;
}

/* The rest of a line from its first slash, as much as there is room for; false: the end. */
static bool read_path(struct reader *r, char path[PATH_MAX]) {
    size_t n = 0;
    int c;
    while ((c = next_char(r)) >= 0 && c != '\n')
        if ((n || c == '/') && n < PATH_MAX - 1) path[n++] = (char)c;
    path[n] = '\0';
    return c >= 0;
}

/* Lines as "7f00-7f80 r--p 0 08:01 17 /a/file". */
static bool find_path(uintptr_t address, char path[PATH_MAX]) {
    struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool found = false, more = r.fd >= 0;
    while (more && !found) {
        const uintptr_t begin = read_hex(&r), end = read_hex(&r);
        more = read_path(&r, path);
        found = more && address >= begin && address < end && path[0];
    }
    if (r.fd >= 0) close(r.fd);
    return found;
}

static void say(const char *path) {
    static const char why[] = ": could not be read to its end: it was cut or written anew while it "
                              "was in use, or its disk fails\n";
    if (tg_fd_write(STDERR_FILENO, path, strlen(path)))
        (void)tg_fd_write(STDERR_FILENO, why, sizeof why - 1);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    (void)context;
    char path[PATH_MAX];
    if (!find_path((uintptr_t)info->si_addr, path)) { /* of no file: as without a handler */
        (void)signal(number, SIG_DFL);
        return;
    }
    while (atomic_flag_test_and_set(&begun)) (void)pause(); /* another thread is saying it */
    say(path);
    ending(tg_status_exit_code(TG_IO));
}

void tg_lost_file_watch(void (*die)(int exit_code)) {
    ending = die;
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGBUS, &action, NULL);
}
