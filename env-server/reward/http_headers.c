/* Lines `Name: value` become headers. A line must be one header and nothing else: no control characters. */
#include "env-server/reward/http_headers.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/config/option.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 65536 };

static bool is_header(const char *line, size_t len) {
    size_t name = 0;
    while (name < len &&
           (strchr("!#$%&'*+-.^_`|~", line[name]) || (line[name] >= '0' && line[name] <= '9') ||
            ((line[name] | 32) >= 'a' && (line[name] | 32) <= 'z')))
        name++;
    if (!name || name == len || line[name] != ':') return false;
    for (size_t i = name; i < len; i++)
        if ((unsigned char)line[i] < 32 && line[i] != '\t') return false;
    return true;
}

static tg_status add(struct curl_slist **list, const char *line, tg_error *err) {
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer) return tg_fail_nomem(err, strlen(line));
    *list = longer;
    return TG_OK;
}

static tg_status add_plain(struct curl_slist **list, const tg_node *map, tg_error *err) {
    if (tg_node_is_null(map)) return TG_OK;
    if (map->kind != TG_NODE_MAP)
        return tg_node_fail(map, "headers", err, "expected a map from names to values");
    tg_status st = TG_OK;
    for (size_t i = 0; i < map->n_items && st == TG_OK; i++) {
        const tg_node *item = map->items[i];
        tg_buf line = {0};
        if (item->kind == TG_NODE_SCALAR) tg_buf_printf(&line, "%s: %s", item->key, item->text);
        if (line.failed)
            st = tg_fail_nomem(err, line.len);
        else if (!line.len || !is_header(line.data, line.len))
            st = tg_node_fail(item, "headers", err, "'%s' is not a header", item->key);
        else
            st = add(list, line.data, err);
        tg_buf_fini(&line);
    }
    return st;
}

/* where: the file or variable, for messages; its lines are not. */
static tg_status add_secret(struct curl_slist **list, const char *text, const char *where,
                            tg_error *err) {
    tg_status st = TG_OK;
    for (int number = 1; *text && st == TG_OK; number++) {
        size_t len = strcspn(text, "\n");
        size_t used = len && text[len - 1] == '\r' ? len - 1 : len;
        tg_buf line = {0};
        tg_buf_append(&line, text, used);
        if (used && line.failed)
            st = tg_fail_nomem(err, used);
        else if (used && !is_header(line.data, used))
            st =
                tg_fail(err, TG_CONFIG, "%s: line %d is not a header `Name: value`", where, number);
        else if (used)
            st = add(list, line.data, err);
        if (line.data) explicit_bzero(line.data, line.len);
        tg_buf_fini(&line);
        text += len + (text[len] == '\n');
    }
    return st;
}

static tg_status add_file(struct curl_slist **list, const char *path, tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_file_read(path, MAX_FILE, &text, err);
    if (st == TG_OK) st = add_secret(list, text.data ? text.data : "", path, err);
    if (text.data) explicit_bzero(text.data, text.len);
    tg_buf_fini(&text);
    return st;
}

tg_status tg_http_headers_make(struct curl_slist **out, const tg_node *plain, const char *file,
                               const char *env, tg_error *err) {
    *out = NULL;
    tg_status st = add(out, "Content-Type: application/json", err);
    if (st == TG_OK) st = add(out, "Expect:", err); /* no extra round trip for large bodies */
    if (st == TG_OK) st = add_plain(out, plain, err);
    if (st == TG_OK && file) st = add_file(out, file, err);
    if (st == TG_OK && env) {
        const char *text = getenv(env);
        st = text ? add_secret(out, text, env, err)
                  : tg_fail(err, TG_NOINPUT, "http: secret_headers_env: $%s is not set", env);
    }
    return st;
}

void tg_http_headers_free(struct curl_slist *headers) {
    for (struct curl_slist *h = headers; h; h = h->next) explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(headers);
}
