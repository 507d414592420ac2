/* Request line and header fields, strict where being generous helps only an attacker. */
#include "common/net/http_request.h"

#include <string.h>

/* Length of the head with its empty line, or 0. Lines end with CR LF, or LF alone. */
static size_t head_length(const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != '\n') continue;
        if (i + 1 < len && bytes[i + 1] == '\n') return i + 2;
        if (i + 2 < len && bytes[i + 1] == '\r' && bytes[i + 2] == '\n') return i + 3;
    }
    return 0;
}

static bool is_token(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* "name: value", no folding, no control characters. */
static bool field_ok(const char *line, size_t len) {
    size_t n = 0;
    while (n < len && is_token(line[n])) n++;
    if (n == 0 || n == len || line[n] != ':') return false;
    for (size_t i = n + 1; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

static bool fields_ok(const char *at, const char *end) {
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) return false;
        size_t len = (size_t)(stop - at);
        if (len && at[len - 1] == '\r') len--;
        if (len && !field_ok(at, len)) return false;
        at = stop + 1;
    }
    return true;
}

static int parse_path(const char *at, size_t len, tg_http_request *out) {
    if (len == 0 || at[0] != '/') return 400;
    size_t n = 0;
    for (; n < len && at[n] != '?'; n++) {
        if (at[n] <= ' ' || at[n] == 0x7f) return 400;
        if (n == TG_HTTP_PATH_MAX) return 414;
        out->path[n] = at[n];
    }
    out->path[n] = '\0';
    return 200;
}

static int parse_line(const char *line, size_t len, tg_http_request *out) {
    const char *space = memchr(line, ' ', len);
    if (!space || space == line) return 400;
    size_t method = (size_t)(space - line);
    for (size_t i = 0; i < method; i++)
        if (!is_token(line[i])) return 400;
    const char *target = space + 1, *end = line + len;
    const char *second = memchr(target, ' ', (size_t)(end - target));
    if (!second) return 400;
    size_t version = (size_t)(end - second - 1);
    if (version != 8 || memcmp(second + 1, "HTTP/", 5) != 0) return 400;
    if (memcmp(second + 6, "1.1", 3) != 0 && memcmp(second + 6, "1.0", 3) != 0) return 505;
    out->head = method == 4 && !memcmp(line, "HEAD", 4);
    if (!out->head && !(method == 3 && !memcmp(line, "GET", 3))) return 405;
    return parse_path(target, (size_t)(second - target), out);
}

int tg_http_request_parse(const char *bytes, size_t len, tg_http_request *out) {
    memset(out, 0, sizeof *out);
    size_t head = head_length(bytes, len < TG_HTTP_HEAD_MAX ? len : TG_HTTP_HEAD_MAX);
    if (head == 0) {
        if (len >= TG_HTTP_HEAD_MAX) return 431;
        /* What cannot become a request is answered at once. */
        return len && !is_token(bytes[0]) ? 400 : 0;
    }
    const char *stop = memchr(bytes, '\n', head);
    size_t line = (size_t)(stop - bytes);
    if (line && bytes[line - 1] == '\r') line--;
    int status = parse_line(bytes, line, out);
    if (status == 200 && !fields_ok(stop + 1, bytes + head)) status = 400;
    return status;
}
