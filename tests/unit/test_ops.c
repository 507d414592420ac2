/* The operations port: requests, pages, figures, limits; words to systemd. */
#include "common/base/clock.h"
#include "common/net/http_get.h"
#include "common/net/http_request.h"
#include "common/net/http_server.h"
#include "common/net/ops.h"
#include "common/net/sd_notify.h"
#include "tests/support/tg_test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- requests ------------------------------------------------------------------------------- */

static int parse(const char *text, tg_http_request *r) {
    size_t len = strlen(text);
    char *exact = malloc(len ? len : 1);
    memcpy(exact, text, len);
    int status = tg_http_request_parse(exact, len, r);
    free(exact);
    return status;
}

TEST(requests_are_parsed) {
    tg_http_request r;
    CHECK_EQ(parse("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n", &r), 200);
    CHECK_STR(r.path, "/metrics");
    CHECK(!r.head);
    CHECK_EQ(parse("HEAD /a?b=c HTTP/1.0\n\n", &r), 200);
    CHECK_STR(r.path, "/a");
    CHECK(r.head);
    CHECK_EQ(parse("", &r), 0);
    CHECK_EQ(parse("GE", &r), 0);
    CHECK_EQ(parse("GET / HTTP/1.1\r\nHost: a\r\n", &r), 0);
    static const struct {
        const char *text;
        int status;
    } bad[] = {{"POST / HTTP/1.1\r\n\r\n", 405},
               {"GET / HTTP/2.0\r\n\r\n", 505},
               {"GET /\r\n\r\n", 400},
               {"GET  / HTTP/1.1\r\n\r\n", 400},
               {"GET x HTTP/1.1\r\n\r\n", 400},
               {"GET / HTTP/1.1\r\nbad line\r\n\r\n", 400},
               {"GET / HTTP/1.1\r\n: x\r\n\r\n", 400},
               {"GET / HTTP/1.1\r\nA: \x01\r\n\r\n", 400},
               {"\x16\x03\x01", 400},
               {"\r\n\r\n", 400},
               {"GET / HTTP/1.1 \r\n\r\n", 400},
               {"G@T / HTTP/1.1\r\n\r\n", 400}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int got = parse(bad[i].text, &r);
        tg_check(got == bad[i].status, __FILE__, __LINE__, "%s: %d, not %d", bad[i].text, got,
                 bad[i].status);
    }
    static char large[TG_HTTP_HEAD_MAX + 100];
    memset(large, 'a', sizeof large - 1);
    CHECK_EQ(parse(large, &r), 431);
    memcpy(large, "GET /", 5);
    memcpy(large + 400, " HTTP/1.1\r\n\r\n", 14);
    CHECK_EQ(parse(large, &r), 414);
}

/* ---- figures -------------------------------------------------------------------------------- */

TEST(figures_in_the_format_of_prometheus) {
    tg_stats *s = tg_stats_create();
    REQUIRE(s != NULL);
    tg_stat *c = tg_stats_counter(s, "a_total", "Some.", NULL, NULL);
    tg_stat *g = tg_stats_gauge(s, "b", "Others.", "x,y", "1,two \"and\\ more\"");
    tg_stat *h = tg_stats_histogram(s, "c_seconds", "Times.", "m", "k");
    tg_stat_add(c, 3);
    tg_stat_add(c, (uint64_t)1 << 53);
    tg_stat_set(g, -0.5);
    tg_stat_observe(h, 0.0001); /* on the limit: inside */
    tg_stat_observe(h, 0.3);
    tg_stat_observe(h, 1000);
    tg_stat_observe(h, -1);
    CHECK(tg_stats_counter(s, "a_total", "Some.", NULL, NULL) == c);
    CHECK(tg_stats_gauge(s, "b", "Others.", "x,y", "1,2") != g);
    CHECK_EQ(tg_stat_value(h), 3);
    tg_buf b = {0};
    tg_stats_write(s, &b);
    static const char *const lines[] = {
        "# HELP a_total Some.\n# TYPE a_total counter\na_total 9007199254740996\n",
        "# TYPE b gauge\nb{x=\"1\",y=\"two \\\"and\\\\ more\\\"\"} -0.5\nb{x=\"1\",y=\"2\"} 0\n",
        "# TYPE c_seconds histogram\nc_seconds_bucket{m=\"k\",le=\"1e-05\"} 0\n",
        "c_seconds_bucket{m=\"k\",le=\"0.0001\"} 1\n",
        "c_seconds_bucket{m=\"k\",le=\"0.25\"} 1\nc_seconds_bucket{m=\"k\",le=\"0.5\"} 2\n",
        "c_seconds_bucket{m=\"k\",le=\"60\"} 2\nc_seconds_bucket{m=\"k\",le=\"+Inf\"} 3\n",
        "c_seconds_sum{m=\"k\"} 1000.3001\nc_seconds_count{m=\"k\"} 3\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        tg_check(strstr(b.data, lines[i]) != NULL, __FILE__, __LINE__, "missing: %s in\n%s",
                 lines[i], b.data);
    tg_buf_reset(&b);
    tg_stats_write_process(&b);
    CHECK(strstr(b.data, "process_open_fds ") && strstr(b.data, "process_cpu_seconds_total "));
    double started = 0;
    CHECK(sscanf(strstr(b.data, "\nprocess_start_time_seconds ") + 28, "%lf", &started) == 1);
    CHECK(started > 1.6e9 && fabs(started - (double)time(NULL)) < 3600);
    CHECK(tg_process_rss() > 1 << 20);
    tg_buf_fini(&b);
    tg_stats_destroy(&s);
}

/* ---- the port ------------------------------------------------------------------------------- */

typedef struct fixture {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    tg_ops *ops;
    char address[64];
    atomic_bool ready;
    atomic_int reloads;
} fixture;

static bool is_ready(void *arg, char why[TG_OPS_WHY]) {
    fixture *f = arg;
    if (atomic_load(&f->ready)) return true;
    snprintf(why, TG_OPS_WHY, "no environment yet");
    return false;
}

static void status(void *arg, tg_buf *json) {
    (void)arg;
    tg_buf_puts(json, ", \"slots\": 7");
}

static void reload(void *arg) {
    atomic_fetch_add(&((fixture *)arg)->reloads, 1);
}

static void on_stop(uv_async_t *async) {
    fixture *f = async->data;
    tg_ops_close(&f->ops);
    uv_close((uv_handle_t *)async, NULL);
}

static void *run(void *arg) {
    uv_run(&((fixture *)arg)->loop, UV_RUN_DEFAULT);
    return NULL;
}

static bool setup(fixture *f) {
    tg_error err = {0};
    memset(f, 0, sizeof *f);
    uv_loop_init(&f->loop);
    uv_async_init(&f->loop, &f->stop, on_stop);
    f->stop.data = f;
    tg_ops_opts opts = {.http = "127.0.0.1:0"};
    tg_ops_hooks hooks = {
        .program = "test", .ready = is_ready, .status = status, .reload = reload, .arg = f};
    if (!tg_check(tg_ops_open(&f->ops, &f->loop, &opts, &hooks, &err) == TG_OK, __FILE__, __LINE__,
                  "%s", err.msg))
        return false;
    snprintf(f->address, sizeof f->address, "%s", tg_ops_address(f->ops));
    return pthread_create(&f->thread, NULL, run, f) == 0;
}

static void teardown(fixture *f) {
    uv_async_send(&f->stop);
    pthread_join(f->thread, NULL);
    CHECK_EQ(uv_loop_close(&f->loop), 0);
}

static int get(fixture *f, const char *path, tg_buf *body) {
    tg_error err = {0};
    int code = 0;
    tg_buf_reset(body);
    tg_status st = tg_http_get(f->address, path, 5000, &code, body, &err);
    return tg_check(st == TG_OK, __FILE__, __LINE__, "%s: %s", path, err.msg) ? code : 0;
}

TEST(pages) {
    fixture f;
    tg_buf b = {0};
    REQUIRE(setup(&f));
    CHECK_EQ(get(&f, "/livez", &b), 200);
    CHECK_EQ(get(&f, "/readyz", &b), 503);
    CHECK_STR(b.data, "no environment yet\n");
    CHECK_EQ(get(&f, "/startupz", &b), 503);
    atomic_store(&f.ready, true);
    CHECK_EQ(get(&f, "/readyz", &b), 200);
    CHECK_EQ(get(&f, "/startupz", &b), 200);
    atomic_store(&f.ready, false);
    CHECK_EQ(get(&f, "/readyz", &b), 503);
    CHECK_EQ(get(&f, "/startupz", &b), 200); /* once started, started */
    CHECK_EQ(get(&f, "/status", &b), 200);
    CHECK(strstr(b.data, "\"program\": \"test\"") && strstr(b.data, "\"slots\": 7}"));
    CHECK_EQ(get(&f, "/metrics", &b), 200);
    CHECK(strstr(b.data, "textgen_build_info{program=\"test\",version=") != NULL);
    CHECK(strstr(b.data, "textgen_ready 0\n") && strstr(b.data, "process_open_fds "));
    CHECK_EQ(get(&f, "/other", &b), 404);
    kill(getpid(), SIGHUP);
    for (int i = 0; i < 100 && atomic_load(&f.reloads) == 0; i++) usleep(20000);
    CHECK_EQ(atomic_load(&f.reloads), 1);
    tg_buf_fini(&b);
    teardown(&f);
}

static int dial_raw(const char *address) {
    struct sockaddr_storage to;
    tg_error err;
    if (tg_http_address(address, &to, &err) != TG_OK) return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)) == 0) return fd;
    close(fd);
    return -1;
}

/* Two hundred connections that never finish their request: the port goes on answering others. */
TEST(slow_requests_keep_nobody_out) {
    fixture f;
    tg_buf b = {0};
    enum { N = 200 };
    int fds[N], held = 0;
    REQUIRE(setup(&f));
    for (int i = 0; i < N; i++) {
        fds[i] = dial_raw(f.address);
        if (fds[i] >= 0 && send(fds[i], "GET /me", 7, MSG_NOSIGNAL) == 7) held++;
        if (i % 20 == 0) CHECK_EQ(get(&f, "/livez", &b), 200);
    }
    CHECK(held >= 64);
    CHECK_EQ(get(&f, "/metrics", &b), 200);
    double open = 0;
    const char *line = strstr(b.data, "\nprocess_open_fds ");
    CHECK(line && sscanf(line + 18, "%lf", &open) == 1);
    CHECK(open < N + 64 + 60); /* both ends are ours: N here, at most 64 there */
    for (int i = 0; i < N; i++)
        if (fds[i] >= 0) close(fds[i]);
    tg_buf_fini(&b);
    teardown(&f);
}

TEST(a_slow_request_ends) {
    fixture f;
    char byte;
    REQUIRE(setup(&f));
    int fd = dial_raw(f.address);
    REQUIRE(fd >= 0);
    uint64_t start = tg_clock_ms();
    CHECK_EQ(send(fd, "GET /", 5, MSG_NOSIGNAL), 5);
    CHECK(recv(fd, &byte, 1, 0) <= 0); /* closed by the other side */
    CHECK(tg_clock_ms() - start >= 1000);
    close(fd);
    teardown(&f);
}

TEST(a_bad_request_is_answered) {
    fixture f;
    char text[512] = "";
    REQUIRE(setup(&f));
    int fd = dial_raw(f.address);
    REQUIRE(fd >= 0);
    CHECK_EQ(send(fd, "BREW / HTTP/1.1\r\n\r\n", 19, MSG_NOSIGNAL), 19);
    size_t len = 0;
    for (ssize_t n;
         len < sizeof text - 1 && (n = recv(fd, text + len, sizeof text - 1 - len, 0)) > 0;)
        len += (size_t)n;
    CHECK(strstr(text, "HTTP/1.1 405 ") == text && strstr(text, "Allow: GET, HEAD\r\n"));
    close(fd);
    teardown(&f);
}

TEST(addresses) {
    struct sockaddr_storage a;
    tg_error err = {0};
    CHECK_OK(tg_http_address("9601", &a, &err));
    CHECK_EQ(((struct sockaddr_in *)&a)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    CHECK_OK(tg_http_address("[::1]:80", &a, &err));
    CHECK_EQ(a.ss_family, AF_INET6);
    CHECK_OK(tg_http_address("0.0.0.0:80", &a, &err));
    CHECK_EQ(tg_http_address("127.0.0.1:x", &a, &err), TG_USAGE);
    CHECK_EQ(tg_http_address(":80", &a, &err), TG_USAGE);
    CHECK_EQ(tg_http_address("127.0.0.1:65536", &a, &err), TG_USAGE);
}

/* ---- systemd -------------------------------------------------------------------------------- */

static int listen_notify(const char *path, bool abstract) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(a.sun_path + abstract, path, strlen(path));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path));
    struct timeval limit = {5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return bind(fd, (struct sockaddr *)&a, size) == 0 ? fd : -1;
}

static void expect(int fd, const char *text) {
    char got[512];
    ssize_t n = recv(fd, got, sizeof got - 1, 0);
    got[n > 0 ? n : 0] = '\0';
    tg_check(strstr(got, text) != NULL, __FILE__, __LINE__, "expected %s, got %s", text, got);
}

TEST(systemd_is_told) {
    char path[256], pid[24];
    snprintf(path, sizeof path, "%s/notify", tg_test_tmpdir());
    unsetenv("NOTIFY_SOCKET");
    CHECK(!tg_sd_notify("READY=1"));
    int fd = listen_notify(path, false);
    REQUIRE(fd >= 0);
    setenv("NOTIFY_SOCKET", path, 1);
    CHECK(tg_sd_notify("STATUS=%d", 5));
    expect(fd, "STATUS=5");
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("WATCHDOG_USEC", "300000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    CHECK_EQ(tg_sd_watchdog_ms(), 300);
    fixture f;
    REQUIRE(setup(&f));
    expect(fd, "WATCHDOG=1"); /* alive, though not ready */
    atomic_store(&f.ready, true);
    bool ready = false;
    for (int i = 0; i < 20 && !ready; i++) {
        char got[512];
        ssize_t n = recv(fd, got, sizeof got - 1, 0);
        got[n > 0 ? n : 0] = '\0';
        ready = strstr(got, "READY=1") != NULL;
    }
    CHECK(ready);
    teardown(&f);
    setenv("WATCHDOG_PID", "1", 1);
    CHECK_EQ(tg_sd_watchdog_ms(), 0);
    unsetenv("WATCHDOG_USEC"), unsetenv("WATCHDOG_PID");
    close(fd);
    char name[64];
    snprintf(name, sizeof name, "textgen-test-%s", pid);
    fd = listen_notify(name, true);
    REQUIRE(fd >= 0);
    snprintf(path, sizeof path, "@%s", name);
    setenv("NOTIFY_SOCKET", path, 1);
    CHECK(tg_sd_notify("STOPPING=1"));
    expect(fd, "STOPPING=1");
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

TEST_MAIN
