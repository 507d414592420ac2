/* The protocol of sd_notify(3): text to a datagram socket of the file system or, with '@', of the abstract
 * name space. Failing is never an error of the service. */
#include "common/net/sd_notify.h"

#include "common/base/str.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool tg_sd_notify(const char *fmt, ...) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[512];
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path)
        return false;
    size_t len = strlen(path);
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') to.sun_path[0] = '\0';
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t n =
        sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to, size);
    close(fd);
    return n >= 0;
}

uint64_t tg_sd_watchdog_ms(void) {
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t wanted, whose;
    if (!usec || !tg_parse_i64(usec, &wanted) || wanted <= 0) return 0;
    if (pid && (!tg_parse_i64(pid, &whose) || whose != (int64_t)getpid())) return 0;
    return (uint64_t)wanted / 1000;
}
