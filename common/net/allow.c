/* The allow-list: parsed whole or not at all, sorted by key id, swapped under a lock.
 *
 * Invariant: `entries` is always a list that parsed without an error. */
#include "common/net/allow.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/hash.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 16 << 20, MAX_FIELDS = 4 };

static const struct {
    const char *name;
    tg_role role; /* 0: any */
} roles[] = {{"client", TG_ROLE_CLIENT},
             {"worker", TG_ROLE_WORKER},
             {"reward", TG_ROLE_REWARD},
             {"admin", 0}};
enum { N_ROLES = sizeof roles / sizeof *roles };

struct tg_allow {
    char *path;
    pthread_mutex_t lock; /* guards what follows */
    tg_allow_entry *entries;
    size_t n;
    uint64_t generation;
};

/* ---- users ---------------------------------------------------------------------------------- */

bool tg_allow_is_role(const char *name, size_t len) {
    for (size_t i = 0; i < N_ROLES; i++)
        if (strlen(roles[i].name) == len && !memcmp(roles[i].name, name, len)) return true;
    return false;
}

bool tg_allow_is_tenant(const char *name, size_t len) {
    if (len == 0 || len > TG_TENANT_MAX) return false;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return false;
    }
    return true;
}

void tg_user_text(const tg_user *user, char out[TG_USER_MAX]) {
    snprintf(out, TG_USER_MAX, "%s:%s", user->role, user->tenant);
}

bool tg_user_parse(tg_user *out, const char *text) {
    memset(out, 0, sizeof *out);
    const char *colon = strchr(text, ':');
    if (!colon) return false;
    size_t role = (size_t)(colon - text), tenant = strlen(colon + 1);
    if (!tg_allow_is_role(text, role) || !tg_allow_is_tenant(colon + 1, tenant)) return false;
    memcpy(out->role, text, role);
    memcpy(out->tenant, colon + 1, tenant);
    return true;
}

bool tg_user_may(const tg_user *user, tg_role role) {
    for (size_t i = 0; i < N_ROLES; i++)
        if (!strcmp(roles[i].name, user->role)) return roles[i].role == 0 || roles[i].role == role;
    return false;
}

/* ---- parsing -------------------------------------------------------------------------------- */

typedef struct field {
    const char *text;
    size_t len;
} field;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static size_t split_line(const char *line, const char *end, field out[MAX_FIELDS]) {
    size_t n = 0;
    while (n < MAX_FIELDS) {
        while (line < end && is_blank(*line)) line++;
        if (line == end) break;
        out[n].text = line;
        while (line < end && !is_blank(*line)) line++;
        out[n].len = (size_t)(line - out[n].text);
        n++;
    }
    return n;
}

static uint64_t key_id(const uint8_t key[TG_KEY_BYTES]) {
    uint64_t id = tg_siphash(0x746774656e67656eu, 0x6b65796964303031u, key, TG_KEY_BYTES);
    return id ? id : 1; /* 0 says: no key */
}

static tg_status parse_entry(const field f[MAX_FIELDS], size_t n, const char *name, int line,
                             tg_allow_entry *out, tg_error *err) {
    memset(out, 0, sizeof *out);
    if (!tg_key_decode(out->key, f[0].text, f[0].len))
        return tg_fail(err, TG_DATA,
                       "%s:%d: expected a public key of 40 characters of Z85, found %zu characters "
                       "that are not; lines are: KEY ROLE TENANT",
                       name, line, f[0].len);
    if (n != 3)
        return tg_fail(err, TG_DATA, "%s:%d: expected KEY ROLE TENANT, found %zu words%s", name,
                       line, n, n == MAX_FIELDS ? " or more" : "");
    if (!tg_allow_is_role(f[1].text, f[1].len))
        return tg_fail(err, TG_DATA,
                       "%s:%d: unknown role \"%.*s\"; expected client, worker, reward or admin",
                       name, line, (int)(f[1].len < 40 ? f[1].len : 40), f[1].text);
    if (!tg_allow_is_tenant(f[2].text, f[2].len))
        return tg_fail(
            err, TG_DATA,
            "%s:%d: a tenant is 1 to %d letters, digits, '.', '_' and '-', found \"%.*s\"", name,
            line, TG_TENANT_MAX, (int)(f[2].len < 60 ? f[2].len : 60), f[2].text);
    memcpy(out->user.role, f[1].text, f[1].len);
    memcpy(out->user.tenant, f[2].text, f[2].len);
    out->user.key_id = key_id(out->key);
    return TG_OK;
}

static int by_id(const void *a, const void *b) {
    const tg_allow_entry *x = a, *y = b;
    if (x->user.key_id != y->user.key_id) return x->user.key_id < y->user.key_id ? -1 : 1;
    return 0;
}

static tg_status push(tg_allow_entry **list, size_t *n, size_t *cap, const tg_allow_entry *e,
                      tg_error *err) {
    if (*n == *cap) {
        size_t more = *cap ? 2 * *cap : 16;
        tg_allow_entry *grown = tg_realloc_array(*list, more, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, more * sizeof *grown);
        *list = grown, *cap = more;
    }
    (*list)[(*n)++] = *e;
    return TG_OK;
}

static tg_status check_unique(const tg_allow_entry *list, size_t n, const char *name,
                              tg_error *err) {
    for (size_t i = 1; i < n; i++)
        if (list[i - 1].user.key_id == list[i].user.key_id)
            return tg_fail(err, TG_DATA,
                           "%s: one key stands twice, as %s:%s and %s:%s; keep one line", name,
                           list[i - 1].user.role, list[i - 1].user.tenant, list[i].user.role,
                           list[i].user.tenant);
    return TG_OK;
}

tg_status tg_allow_parse(const char *text, size_t len, const char *name, tg_allow_entry **out,
                         size_t *n, tg_error *err) {
    const char *end = text + len;
    size_t cap = 0;
    int number = 0;
    tg_status st = TG_OK;
    *out = NULL, *n = 0;
    for (const char *line = text, *next; st == TG_OK && line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        number++;
        field f[MAX_FIELDS];
        tg_allow_entry e;
        size_t words = split_line(line, stop ? stop : end, f);
        if (words == 0 || f[0].text[0] == '#') continue; /* no 32 bytes give a key that begins so */
        st = parse_entry(f, words, name, number, &e, err);
        if (st == TG_OK && *n == TG_ALLOW_MAX)
            st = tg_fail(err, TG_DATA, "%s:%d: more than %d keys", name, number, TG_ALLOW_MAX);
        if (st == TG_OK) st = push(out, n, &cap, &e, err);
    }
    if (*n > 1) qsort(*out, *n, sizeof **out, by_id);
    if (st == TG_OK) st = check_unique(*out, *n, name, err);
    if (st != TG_OK) {
        tg_free(*out);
        *out = NULL, *n = 0;
    }
    return st;
}

/* ---- the list in force ---------------------------------------------------------------------- */

/* Whoever can change the list can let themselves in. */
static tg_status check_owner(const char *path, tg_error *err) {
    struct stat st;
    if (stat(path, &st) != 0)
        return tg_fail_errno(err, TG_NOINPUT, "%s: the allow-list cannot be opened", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return tg_fail(err, TG_DENIED,
                       "%s: belongs to user %u: an allow-list must be this user's or root's", path,
                       (unsigned)st.st_uid);
    if (st.st_mode & 022)
        return tg_fail(err, TG_DENIED,
                       "%s: mode %04o lets others change who may connect; chmod 644 %s", path,
                       (unsigned)(st.st_mode & 07777), path);
    return TG_OK;
}

static tg_status load(const char *name, tg_allow_entry **out, size_t *n, tg_error *err) {
    char *credential = tg_credential_path(name);
    const char *path = credential ? credential : name;
    tg_buf text = {0};
    tg_status st = credential ? TG_OK : check_owner(path, err);
    if (st == TG_OK) st = tg_file_read(path, MAX_FILE, &text, err);
    if (st == TG_OK) st = tg_allow_parse(text.data ? text.data : "", text.len, path, out, n, err);
    tg_buf_fini(&text);
    tg_free(credential);
    return st;
}

tg_status tg_allow_open(tg_allow **out, const char *path, tg_error *err) {
    tg_allow *a = *out = tg_alloc(sizeof *a);
    if (!a) return tg_fail_nomem(err, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    a->path = tg_strdup(path);
    tg_status st =
        a->path ? load(a->path, &a->entries, &a->n, err) : tg_fail_nomem(err, strlen(path));
    if (st != TG_OK) tg_allow_close(out);
    return st;
}

void tg_allow_close(tg_allow **allow) {
    tg_allow *a = *allow;
    if (!a) return;
    pthread_mutex_destroy(&a->lock);
    tg_free(a->entries);
    tg_free(a->path);
    tg_free(a);
    *allow = NULL;
}

tg_status tg_allow_reload(tg_allow *a, tg_error *err) {
    tg_allow_entry *entries, *old;
    size_t n;
    tg_status st = load(a->path, &entries, &n, err);
    if (st != TG_OK) return st;
    pthread_mutex_lock(&a->lock);
    old = a->entries;
    a->entries = entries, a->n = n;
    a->generation++;
    pthread_mutex_unlock(&a->lock);
    tg_free(old);
    return TG_OK;
}

size_t tg_allow_count(tg_allow *a) {
    pthread_mutex_lock(&a->lock);
    size_t n = a->n;
    pthread_mutex_unlock(&a->lock);
    return n;
}

uint64_t tg_allow_generation(tg_allow *a) {
    pthread_mutex_lock(&a->lock);
    uint64_t generation = a->generation;
    pthread_mutex_unlock(&a->lock);
    return generation;
}

/* Called with the lock held. */
static const tg_allow_entry *entry_of(const tg_allow *a, uint64_t id) {
    tg_allow_entry wanted = {.user.key_id = id};
    return a->n ? bsearch(&wanted, a->entries, a->n, sizeof wanted, by_id) : NULL;
}

bool tg_allow_find(tg_allow *a, const uint8_t key[TG_KEY_BYTES], tg_user *user) {
    pthread_mutex_lock(&a->lock);
    const tg_allow_entry *e = entry_of(a, key_id(key));
    bool found = e && !memcmp(e->key, key, TG_KEY_BYTES);
    if (found) *user = e->user;
    pthread_mutex_unlock(&a->lock);
    return found;
}

bool tg_allow_has(tg_allow *a, const tg_user *user) {
    pthread_mutex_lock(&a->lock);
    const tg_allow_entry *e = entry_of(a, user->key_id);
    bool same = e && !strcmp(e->user.role, user->role) && !strcmp(e->user.tenant, user->tenant);
    pthread_mutex_unlock(&a->lock);
    return same;
}
