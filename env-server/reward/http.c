/* The reward http: a function behind POST, with the JSON of score_json.h both ways. Every lane has its own connection,
 * kept open between calls. Headers from a file or the environment may hold secrets: they are never logged. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "env-server/reward/external.h"
#include "env-server/reward/http_headers.h"
#include "env-server/reward/rows.h"
#include "env-server/reward/score_json.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <string.h>

enum { CONNECT_MS = 10000, IDLE_S = 60, MAX_RETRY_AFTER_S = 3600 };

struct options {
    tg_external_opts common;
    const char *url, *secret_headers_file, *secret_headers_env, *ca_file;
    const tg_node *headers;
    int64_t max_reply;
};
static const tg_opt options[] = {
    TG_OPT_STR_REQUIRED(struct options, url,
                        "Where to POST to: http://HOST:PORT/PATH or https://…"),
    TG_OPT_NODE(struct options, headers, "Further headers: a map."),
    TG_OPT_STR(struct options, secret_headers_file, NULL,
               "File with lines `Name: value`, sent as headers and never shown."),
    TG_OPT_STR(struct options, secret_headers_env, NULL, "Environment variable with such lines."),
    TG_OPT_STR(struct options, ca_file, NULL, "Certificates to trust instead of the system's."),
    TG_OPT_INT(struct options, max_reply, "16777216", 64, 1 << 30, "Bytes of one answer."),
    TG_OPT_EXTERNAL(struct options, "4"),
    TG_OPT_EXTERNAL_KIND(struct options),
    TG_OPT_END};

/* One connection. Its lane's thread only. */
typedef struct connection {
    CURL *curl;
    uint64_t next_id;
    tg_buf request, reply;
} connection;

struct state {
    tg_external x; /* first */
    char *url, *ca_file;
    struct curl_slist *headers;
    size_t max_reply;
    bool deterministic, curl_ready;
    atomic_bool stop;
    connection lanes[TG_SCORE_LANES];
};

/* ---- one request --------------------------------------------------------------------------- */

typedef struct body {
    tg_buf *out;
    size_t max;
    bool too_long;
} body;

static size_t on_body(char *bytes, size_t size, size_t n, void *arg) {
    body *b = arg;
    b->too_long = size * n > b->max - b->out->len;
    if (b->too_long) return 0;
    tg_buf_append(b->out, bytes, size * n);
    return b->out->failed ? 0 : size * n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load((const atomic_bool *)arg);
}

static tg_status open_connection(struct state *s, connection *k, tg_error *err) {
    if (k->curl) return TG_OK;
    k->curl = curl_easy_init();
    if (!k->curl) return tg_fail(err, TG_NOMEM, "no connection could be made");
    curl_easy_setopt(k->curl, CURLOPT_URL, s->url);
    curl_easy_setopt(k->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(k->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(k->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(k->curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(k->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(k->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(k->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(k->curl, CURLOPT_XFERINFODATA, &s->stop);
    curl_easy_setopt(k->curl, CURLOPT_MAXAGE_CONN, (long)IDLE_S);
    curl_easy_setopt(k->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    if (s->ca_file) curl_easy_setopt(k->curl, CURLOPT_CAINFO, s->ca_file);
    return TG_OK;
}

/* A failure of the transport. Before a connection stands, nothing can have been processed. */
static tg_status transport_failed(const struct state *s, CURLcode code, const body *b,
                                  tg_score_fault *fault, tg_error *err) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        fault->retry = true;
        return tg_fail(err, TG_UNAVAILABLE, "no connection: %s", curl_easy_strerror(code));
    case CURLE_OPERATION_TIMEDOUT: return tg_fail(err, TG_TIMEOUT, "no answer in time");
    case CURLE_ABORTED_BY_CALLBACK:
        return tg_fail(err, TG_UNAVAILABLE, "the reward is shutting down");
    case CURLE_WRITE_ERROR:
        if (b->too_long)
            return tg_fail(err, TG_DATA, "the answer is longer than %zu bytes", s->max_reply);
        return tg_fail_nomem(err, s->max_reply);
    default:
        fault->retry = s->deterministic;
        return tg_fail(err, TG_UNAVAILABLE, "%s", curl_easy_strerror(code));
    }
}

/* An answer that is none. 429, and 503 with Retry-After, say that nothing was done; a gateway's 502 and 504 do not. */
static tg_status refused(const struct state *s, CURL *curl, long status, tg_score_fault *fault,
                         tg_error *err) {
    curl_off_t after = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &after);
    bool again = status == 429 || status == 502 || status == 503 || status == 504;
    bool undone = status == 429 || (status == 503 && after > 0);
    fault->retry = again && (undone || s->deterministic);
    if (after > 0 && after <= MAX_RETRY_AFTER_S) fault->retry_after_ms = (uint32_t)after * 1000;
    return tg_fail(err, TG_UNAVAILABLE, "HTTP status %ld", status);
}

static tg_status post(struct state *s, connection *k, uint64_t deadline_ns, tg_score_fault *fault,
                      tg_error *err) {
    body b = {.out = &k->reply, .max = s->max_reply};
    uint64_t now = tg_clock_ns();
    long left = deadline_ns > now ? (long)((deadline_ns - now) / 1000000) + 1 : 1, status = 0;
    tg_buf_reset(&k->reply);
    curl_easy_setopt(k->curl, CURLOPT_POSTFIELDS, k->request.data);
    curl_easy_setopt(k->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)k->request.len);
    curl_easy_setopt(k->curl, CURLOPT_WRITEDATA, &b);
    curl_easy_setopt(k->curl, CURLOPT_TIMEOUT_MS, left);
    curl_easy_setopt(k->curl, CURLOPT_CONNECTTIMEOUT_MS, left < CONNECT_MS ? left : CONNECT_MS);
    CURLcode code = curl_easy_perform(k->curl);
    if (code != CURLE_OK) return transport_failed(s, code, &b, fault, err);
    curl_easy_getinfo(k->curl, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300 ? TG_OK : refused(s, k->curl, status, fault, err);
}

static tg_status call(void *backend, int lane, const tg_score_call *c, tg_score_result *results,
                      tg_score_fault *fault, tg_error *err) {
    struct state *s = backend;
    connection *k = &s->lanes[lane];
    tg_status st = open_connection(s, k, err);
    if (st != TG_OK) return st;
    tg_buf_reset(&k->request);
    tg_score_json_write(&k->request, k->next_id++, c);
    if (k->request.failed) return tg_fail_nomem(err, k->request.len);
    st = post(s, k, c->deadline_ns, fault, err);
    if (st != TG_OK) return st;
    return tg_score_json_read(k->reply.data ? k->reply.data : "", k->reply.len, NULL, c->n, results,
                              c->arena, err);
}

static void leave(void *backend, int lane) {
    connection *k = &((struct state *)backend)->lanes[lane];
    curl_easy_cleanup(k->curl);
    tg_buf_fini(&k->request);
    tg_buf_fini(&k->reply);
}

static void interrupt(void *backend) {
    atomic_store(&((struct state *)backend)->stop, true);
}

static const tg_score_ops score_ops = {.call = call, .leave = leave, .interrupt = interrupt};

/* ---- life ---------------------------------------------------------------------------------- */

static void close_reward(void *state) {
    struct state *s = state;
    tg_external_close(&s->x);
    tg_http_headers_free(s->headers);
    tg_free(s->url);
    tg_free(s->ca_file);
    if (s->curl_ready) curl_global_cleanup();
}

/* A name for messages, and a refusal of what would show up in logs and configs. */
static tg_status check_url(const char *url, tg_buf *name, tg_error *err) {
    CURLU *u = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *user = NULL;
    tg_status st = TG_OK;
    if (!u || curl_url_set(u, CURLUPART_URL, url, 0) ||
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
        curl_url_get(u, CURLUPART_HOST, &host, 0) || curl_url_get(u, CURLUPART_PATH, &path, 0) ||
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
        (strcmp(scheme, "http") && strcmp(scheme, "https")))
        st = tg_fail(err, TG_CONFIG, "http: url: expected http://HOST:PORT/PATH or https://…");
    else if (!curl_url_get(u, CURLUPART_USER, &user, 0))
        st = tg_fail(err, TG_CONFIG,
                     "http: url: holds a user name or password; put `Authorization: …` into "
                     "secret_headers_file instead");
    else
        tg_buf_printf(name, "%s://%s:%s%s", scheme, host, port, path);
    curl_free(scheme), curl_free(host), curl_free(port), curl_free(path), curl_free(user);
    curl_url_cleanup(u);
    return st == TG_OK && name->failed ? tg_fail_nomem(err, name->len) : st;
}

static tg_status start(struct state *s, const struct options *o, tg_error *err) {
    tg_buf name = {0}, identity = {0};
    tg_status st = check_url(o->url, &name, err);
    if (st == TG_OK) {
        tg_buf_printf(&identity, "http %s %s", o->common.version ? o->common.version : "", o->url);
        st = identity.failed ? tg_fail_nomem(err, identity.len)
                             : tg_external_open(&s->x, &o->common, name.data, identity.data,
                                                &score_ops, s, err);
    }
    tg_buf_fini(&name);
    tg_buf_fini(&identity);
    return st;
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    (void)ctx;
    s->max_reply = (size_t)o->max_reply;
    s->deterministic = o->common.deterministic;
    s->url = tg_strdup(o->url);
    s->ca_file = o->ca_file ? tg_strdup(o->ca_file) : NULL;
    s->curl_ready = !curl_global_init(CURL_GLOBAL_DEFAULT); /* counted by libcurl itself */
    tg_status st = s->url && (s->ca_file || !o->ca_file) && s->curl_ready
                       ? TG_OK
                       : tg_fail_nomem(err, strlen(o->url));
    if (st == TG_OK)
        st = tg_http_headers_make(&s->headers, o->headers, o->secret_headers_file,
                                  o->secret_headers_env, err);
    if (st == TG_OK) st = start(s, o, err);
    if (st != TG_OK) close_reward(s);
    return st;
}

const tg_reward_ops tg_reward_http =
    TG_EXTERNAL_OPS("http", "A function behind HTTP: POST of JSON.");
