/* Key files: read with a check of who else can, written once and never over another.
 *
 * Every buffer that held a secret is wiped before its function returns, on failure too. */
#include "common/net/keys.h"

#include "common/base/alloc.h"
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { MAX_FILE = 4096 };

void tg_key_wipe(void *secret, size_t size) {
    explicit_bzero(secret, size);
}

tg_status tg_keys_available(tg_error *err) {
    if (zmq_has("curve")) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "this machine's libzmq was built without CURVE: no encrypted connections; "
                   "Debian's libzmq5 has it");
}

bool tg_key_decode(uint8_t out[TG_KEY_BYTES], const char *text, size_t len) {
    char key[TG_KEY_TEXT + 1];
    if (len != TG_KEY_TEXT || memchr(text, '\0', len)) return false;
    memcpy(key, text, TG_KEY_TEXT);
    key[TG_KEY_TEXT] = '\0';
    bool ok = zmq_z85_decode(out, key) != NULL;
    tg_key_wipe(key, sizeof key);
    return ok;
}

tg_status tg_key_pair_create(tg_key_pair *out, tg_error *err) {
    tg_status st = tg_keys_available(err);
    if (st != TG_OK) return st;
    if (zmq_curve_keypair(out->public_key, out->secret_key) != 0)
        return tg_fail(err, TG_UNAVAILABLE, "no key pair: %s", zmq_strerror(zmq_errno()));
    return TG_OK;
}

/* ---- the text of a key file ----------------------------------------------------------------- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* `name = "KEY"` → the key's place, or NULL when the line is another one. */
static const char *value_of(const char *line, const char *end, const char *name, size_t *len) {
    size_t n = strlen(name);
    while (line < end && is_blank(*line)) line++;
    if ((size_t)(end - line) < n || memcmp(line, name, n) != 0) return NULL;
    line += n;
    while (line < end && is_blank(*line)) line++;
    if (line == end || *line != '=') return NULL;
    line++;
    while (line < end && (is_blank(*line) || *line == '"')) line++;
    while (end > line && (is_blank(end[-1]) || end[-1] == '"')) end--;
    *len = (size_t)(end - line);
    return line;
}

static bool take_key(char *out, const char *text, size_t len) {
    uint8_t bytes[TG_KEY_BYTES];
    bool ok = tg_key_decode(bytes, text, len);
    tg_key_wipe(bytes, sizeof bytes);
    if (!ok) return false;
    memcpy(out, text, TG_KEY_TEXT);
    out[TG_KEY_TEXT] = '\0';
    return true;
}

tg_status tg_key_parse(const char *text, size_t len, const char *name, char *public_key,
                       char *secret_key, tg_error *err) {
    const char *end = text + len;
    bool have_public = false, have_secret = false;
    int number = 0;
    for (const char *line = text, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        number++;
        size_t n;
        const char *value = value_of(line, stop, "public-key", &n);
        bool is_public = value != NULL;
        if (!value) value = value_of(line, stop, "secret-key", &n);
        if (!value || (!is_public && !secret_key)) continue;
        if (!take_key(is_public ? public_key : secret_key, value, n))
            return tg_fail(err, TG_DATA,
                           "%s:%d: %s-key: expected 40 characters of Z85, found %zu that are not",
                           name, number, is_public ? "public" : "secret", n);
        *(is_public ? &have_public : &have_secret) = true;
    }
    if (!have_public || (secret_key && !have_secret))
        return tg_fail(err, TG_DATA,
                       "%s: no line %s-key = \"…\"; `textgen keygen` makes such files", name,
                       have_public ? "secret" : "public");
    return TG_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

char *tg_credential_path(const char *name) {
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (!folder || strchr(name, '/')) return NULL;
    char *path = tg_path_join(folder, name);
    if (path && tg_path_exists(path)) return path;
    tg_free(path);
    return NULL;
}

/* systemd owns the credentials folder and lets nobody else in; there the group may be root's. */
static tg_status check_private(int fd, const char *path, bool credential, tg_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return tg_fail_errno(err, TG_IO, "%s: cannot be examined", path);
    if (!S_ISREG(st.st_mode)) return tg_fail(err, TG_DATA, "%s: not a plain file", path);
    if (!credential && st.st_uid != geteuid() && st.st_uid != 0)
        return tg_fail(err, TG_DENIED,
                       "%s: belongs to user %u, this process runs as %u: a secret key must be the "
                       "process's own; chown it",
                       path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (credential ? 007 : 077))
        return tg_fail(err, TG_DENIED,
                       "%s: mode %04o lets others read or change the secret key; chmod 600 %s",
                       path, (unsigned)(st.st_mode & 07777), path);
    return TG_OK;
}

static tg_status read_small(int fd, const char *path, char out[MAX_FILE], size_t *len,
                            tg_error *err) {
    *len = 0;
    while (*len < MAX_FILE) {
        ssize_t n = read(fd, out + *len, MAX_FILE - *len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return tg_fail_errno(err, TG_IO, "%s: cannot be read", path);
        if (n == 0) return TG_OK;
        *len += (size_t)n;
    }
    return tg_fail(err, TG_DATA, "%s: larger than a key file is", path);
}

/* public_key and, when not NULL, secret_key from the file. */
static tg_status read_file(const char *name, char *public_key, char *secret_key, tg_error *err) {
    char text[MAX_FILE], *credential = tg_credential_path(name);
    const char *path = credential ? credential : name;
    size_t len = 0;
    tg_status st = TG_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        st = tg_fail_errno(err, errno == ENOENT ? TG_NOINPUT : TG_DENIED,
                           "%s: the key cannot be opened", path);
    if (st == TG_OK && secret_key) st = check_private(fd, path, credential != NULL, err);
    if (st == TG_OK) st = read_small(fd, path, text, &len, err);
    if (st == TG_OK) st = tg_key_parse(text, len, path, public_key, secret_key, err);
    tg_key_wipe(text, sizeof text);
    if (fd >= 0) close(fd);
    tg_free(credential);
    return st;
}

static tg_status check_pair(const tg_key_pair *pair, const char *path, tg_error *err) {
    char derived[TG_KEY_TEXT + 1];
    if (zmq_curve_public(derived, pair->secret_key) == 0 && !strcmp(derived, pair->public_key))
        return TG_OK;
    return tg_fail(err, TG_DATA, "%s: the public key is not that of the secret key", path);
}

tg_status tg_key_pair_read(tg_key_pair *out, const char *path, tg_error *err) {
    uint8_t bytes[TG_KEY_BYTES];
    memset(out, 0, sizeof *out);
    tg_status st = tg_keys_available(err);
    if (st != TG_OK) return st;
    if (tg_key_decode(bytes, path, strlen(path)) && !tg_path_exists(path)) {
        tg_key_wipe(bytes, sizeof bytes);
        return tg_fail(err, TG_USAGE,
                       "a secret key on the command line can be seen by every user of the machine: "
                       "give the name of a key file");
    }
    st = read_file(path, out->public_key, out->secret_key, err);
    if (st == TG_OK) st = check_pair(out, path, err);
    if (st != TG_OK) tg_key_wipe(out, sizeof *out);
    return st;
}

tg_status tg_key_public_read(char out[TG_KEY_TEXT + 1], const char *key_or_path, tg_error *err) {
    if (take_key(out, key_or_path, strlen(key_or_path))) return TG_OK;
    tg_status st = read_file(key_or_path, out, NULL, err);
    if (st == TG_NOINPUT)
        return tg_fail(err, TG_NOINPUT,
                       "\"%s\" is neither a public key of 40 characters nor a file that holds one",
                       key_or_path);
    return st;
}

/* ---- writing -------------------------------------------------------------------------------- */

static tg_status create_file(const char *path, mode_t mode, const char *text, tg_error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && errno == EEXIST)
        return tg_fail(err, TG_USAGE,
                       "%s exists and is not overwritten: choose another name or remove it", path);
    if (fd < 0) return tg_fail_errno(err, TG_IO, "%s: cannot be created", path);
    bool ok = fchmod(fd, mode) == 0 && tg_fd_write(fd, text, strlen(text)) && fsync(fd) == 0;
    if (!ok) tg_fail_errno(err, TG_IO, "%s: cannot be written", path);
    close(fd);
    if (!ok) unlink(path);
    return ok ? TG_OK : TG_IO;
}

tg_status tg_key_pair_write(const tg_key_pair *pair, const char *path, tg_error *err) {
    tg_buf key_path = {0}, pub_path = {0};
    char text[512];
    tg_buf_printf(&key_path, "%s.key", path);
    tg_buf_printf(&pub_path, "%s.pub", path);
    tg_status st = TG_OK;
    if (key_path.failed || pub_path.failed) {
        st = tg_fail_nomem(err, strlen(path));
    } else if (tg_path_exists(pub_path.data)) {
        st = tg_fail(err, TG_USAGE, "%s exists and is not overwritten: choose another name",
                     pub_path.data);
    } else {
        snprintf(text, sizeof text,
                 "#   A textgen key pair. The secret stays on the machine that uses it.\n"
                 "curve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n",
                 pair->public_key, pair->secret_key);
        st = create_file(key_path.data, 0600, text, err);
    }
    if (st == TG_OK) {
        snprintf(text, sizeof text, "#   A textgen public key.\ncurve\n    public-key = \"%s\"\n",
                 pair->public_key);
        st = create_file(pub_path.data, 0644, text, err);
        if (st != TG_OK) unlink(key_path.data);
    }
    tg_key_wipe(text, sizeof text);
    tg_buf_fini(&key_path);
    tg_buf_fini(&pub_path);
    return st;
}
