/* The default stance is closed: sockets of the file system belong to this user alone, tcp stays on
 * this machine. */
#include "common/net/address.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { IPC = 6 /* strlen("ipc://") */ };

bool tg_address_is_ipc(const char *address) {
    return tg_str_starts(address, "ipc://");
}

bool tg_address_is_local(const char *address) {
    return tg_address_is_ipc(address) || tg_str_starts(address, "tcp://127.") ||
           tg_str_starts(address, "tcp://localhost:") || tg_str_starts(address, "tcp://[::1]:");
}

tg_status tg_address_check(const char *address, tg_error *err) {
    if (tg_address_is_ipc(address)) {
        const char *path = address + IPC;
        struct sockaddr_un sun;
        if (*path == '\0' || *path == '@' || *path == '*') {
            return tg_fail(err, TG_USAGE, "%s: ipc:// needs the path of a file", address);
        }
        if (strlen(path) >= sizeof sun.sun_path) {
            return tg_fail(err, TG_USAGE,
                           "%s: path is longer than the %zu bytes of a socket address", address,
                           sizeof sun.sun_path - 1);
        }
        return TG_OK;
    }
    const char *colon = strrchr(address, ':');
    if (!tg_str_starts(address, "tcp://") || colon <= address + 6 || colon[1] == '\0') {
        return tg_fail(err, TG_USAGE, "%s: not an address; expected ipc://PATH or tcp://HOST:PORT",
                       address);
    }
    return TG_OK;
}

/* The folder of an ipc path, made private if we make it. An existing folder keeps its mode: the
 * socket itself is created for this user alone (ipc.c). */
static tg_status prepare_folder(const char *path, tg_error *err) {
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return TG_OK;
    char *folder = tg_strndup(path, (size_t)(slash - path));
    if (!folder) return tg_fail_nomem(err, (size_t)(slash - path));
    tg_status st = TG_OK;
    if (!tg_path_is_dir(folder)) {
        st = tg_dir_create(folder, err);
        if (st == TG_OK && chmod(folder, 0700) != 0)
            st = tg_fail_errno(err, TG_IO, "%s: cannot set mode 0700", folder);
    }
    tg_free(folder);
    return st;
}

tg_status tg_address_prepare(const char *address, bool open, tg_error *err) {
    tg_status st = tg_address_check(address, err);
    if (st != TG_OK) return st;
    if (tg_address_is_ipc(address)) return prepare_folder(address + IPC, err);
    if (tg_address_is_local(address) || open) return TG_OK;
    return tg_fail(
        err, TG_DENIED,
        "%s: refusing to listen where other machines can connect without keys: give --key "
        "and --allow (textgen keygen makes them), use ipc:// or tcp://127.0.0.1, or allow "
        "it with --insecure on a network you trust",
        address);
}
