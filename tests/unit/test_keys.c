/* Key files, allow-lists, and what CURVE with both of them lets through: real sockets on loopback. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/net/keys.h"
#include "common/net/link.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const char *name) {
    static char paths[8][256];
    static int at;
    char *p = paths[at++ % 8];
    snprintf(p, sizeof *paths, "%s/%s", tg_test_tmpdir(), name);
    return p;
}

static void write_file(const char *path, const char *text, mode_t mode) {
    tg_error err = {0};
    CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
    CHECK_EQ(chmod(path, mode), 0);
}

/* ---- key files ------------------------------------------------------------------------------ */

TEST(a_pair_is_written_once_and_read_back) {
    tg_key_pair pair, back;
    tg_error err = {0};
    const char *name = path_of("pair");
    REQUIRE_OK(tg_key_pair_create(&pair, &err));
    REQUIRE_OK(tg_key_pair_write(&pair, name, &err));
    REQUIRE_OK(tg_key_pair_read(&back, path_of("pair.key"), &err));
    CHECK_STR(back.public_key, pair.public_key);
    CHECK_STR(back.secret_key, pair.secret_key);
    struct stat st;
    CHECK_EQ(stat(path_of("pair.key"), &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    char public_key[TG_KEY_TEXT + 1];
    CHECK_OK(tg_key_public_read(public_key, path_of("pair.pub"), &err));
    CHECK_STR(public_key, pair.public_key);
    CHECK_OK(tg_key_public_read(public_key, pair.public_key, &err));
    CHECK_STR(public_key, pair.public_key);
    CHECK_EQ(tg_key_pair_write(&pair, name, &err), TG_USAGE);
    CHECK(strstr(err.msg, "not overwritten") != NULL);
    unlink(path_of("pair.key"));
    CHECK_EQ(tg_key_pair_write(&pair, name, &err), TG_USAGE); /* the .pub is still there */
    CHECK(!tg_path_exists(path_of("pair.key")));
}

TEST(a_secret_that_others_can_read_is_refused) {
    tg_key_pair pair, back;
    tg_error err = {0};
    REQUIRE_OK(tg_key_pair_create(&pair, &err));
    REQUIRE_OK(tg_key_pair_write(&pair, path_of("open"), &err));
    const mode_t modes[] = {0644, 0640, 0660, 0604, 0620};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        chmod(path_of("open.key"), modes[i]);
        CHECK_EQ(tg_key_pair_read(&back, path_of("open.key"), &err), TG_DENIED);
        CHECK(strstr(err.msg, "chmod 600") && !strstr(err.msg, pair.secret_key));
        CHECK_EQ(back.secret_key[0], 0);
    }
    chmod(path_of("open.key"), 0400);
    CHECK_OK(tg_key_pair_read(&back, path_of("open.key"), &err));
    if (geteuid() == 0) { /* someone else's file */
        CHECK_EQ(chown(path_of("open.key"), 12345, (gid_t)-1), 0);
        CHECK_EQ(tg_key_pair_read(&back, path_of("open.key"), &err), TG_DENIED);
        CHECK(strstr(err.msg, "12345") != NULL);
    }
}

TEST(the_credentials_folder_of_systemd_comes_first) {
    tg_key_pair pair, back;
    tg_error err = {0};
    REQUIRE_OK(tg_key_pair_create(&pair, &err));
    REQUIRE_OK(tg_key_pair_write(&pair, path_of("curve"), &err));
    chmod(path_of("curve.key"), 0440);
    setenv("CREDENTIALS_DIRECTORY", tg_test_tmpdir(), 1);
    CHECK_OK(tg_key_pair_read(&back, "curve.key", &err));
    CHECK_STR(back.public_key, pair.public_key);
    chmod(path_of("curve.key"), 0444);
    CHECK_EQ(tg_key_pair_read(&back, "curve.key", &err), TG_DENIED);
    unsetenv("CREDENTIALS_DIRECTORY");
    CHECK_EQ(tg_key_pair_read(&back, "curve.key", &err), TG_NOINPUT);
}

TEST(bad_key_files_say_where) {
    tg_key_pair pair, other;
    tg_error err = {0};
    char text[512];
    REQUIRE_OK(tg_key_pair_create(&pair, &err));
    REQUIRE_OK(tg_key_pair_create(&other, &err));
    write_file(path_of("bad"), "curve\n    public-key = \"short\"\n", 0600);
    CHECK_EQ(tg_key_pair_read(&other, path_of("bad"), &err), TG_DATA);
    CHECK(strstr(err.msg, "bad:2: public-key") != NULL);
    snprintf(text, sizeof text, "public-key = \"%s\"\n", pair.public_key);
    write_file(path_of("bad"), text, 0600);
    CHECK_EQ(tg_key_pair_read(&other, path_of("bad"), &err), TG_DATA);
    CHECK(strstr(err.msg, "secret-key") != NULL);
    REQUIRE_OK(tg_key_pair_create(&other, &err));
    snprintf(text, sizeof text, "public-key = \"%s\"\nsecret-key = \"%s\"\n", pair.public_key,
             other.secret_key);
    write_file(path_of("bad"), text, 0600);
    CHECK_EQ(tg_key_pair_read(&other, path_of("bad"), &err), TG_DATA);
    CHECK(strstr(err.msg, "is not that of the secret key") != NULL);
    CHECK_EQ(tg_key_pair_read(&other, pair.secret_key, &err), TG_USAGE);
    CHECK(strstr(err.msg, "command line") && !strstr(err.msg, pair.secret_key));
    CHECK_EQ(tg_key_public_read(text, "neither", &err), TG_NOINPUT);
    uint8_t bytes[TG_KEY_BYTES];
    CHECK(!tg_key_decode(bytes, "########################################", 40)); /* beyond 2^32 */
    CHECK(!tg_key_decode(bytes, "#ne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", 40));
    CHECK(!tg_key_decode(bytes, pair.public_key, 39));
    CHECK(tg_key_decode(bytes, pair.public_key, 40));
}

/* ---- the allow-list ------------------------------------------------------------------------- */

#define KEY_1 "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define KEY_2 "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static tg_status parse(const char *text, tg_allow_entry **list, size_t *n, tg_error *err) {
    char *exact = malloc(strlen(text) + 1); /* exactly as long, for the sanitizer */
    memcpy(exact, text, strlen(text) + 1);
    tg_status st = tg_allow_parse(exact, strlen(text), "allow.txt", list, n, err);
    free(exact);
    return st;
}

TEST(an_allow_list_is_read) {
    tg_allow_entry *list;
    size_t n;
    tg_error err = {0};
    REQUIRE_OK(parse("# people\n\n  " KEY_1 "\tclient  team-a\r\n#" KEY_2 " worker off\n" KEY_2
                     " admin  b.c_d-9",
                     &list, &n, &err));
    CHECK_EQ(n, 2);
    for (size_t i = 0; i < n; i++) {
        bool first = !strcmp(list[i].user.role, "client");
        CHECK_STR(list[i].user.tenant, first ? "team-a" : "b.c_d-9");
        CHECK(first || !strcmp(list[i].user.role, "admin"));
        CHECK(list[i].user.key_id != 0);
    }
    tg_free(list);
    REQUIRE_OK(parse("", &list, &n, &err));
    CHECK_EQ(n, 0);
}

TEST(mistakes_in_an_allow_list_have_a_line) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"hello client a\n", "allow.txt:1: expected a public key"},
        {"#\n" KEY_1 " client\n", "allow.txt:2: expected KEY ROLE TENANT, found 2 words"},
        {KEY_1 " client a b c\n", "allow.txt:1: expected KEY ROLE TENANT, found 4 words or more"},
        {KEY_1 " root a\n", "allow.txt:1: unknown role \"root\""},
        {KEY_1 " client a/b\n", "allow.txt:1: a tenant is"},
        {KEY_1 " client aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "allow.txt:1: a tenant is"},
        {KEY_1 " client a\n" KEY_1 " worker b\n", "one key stands twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_allow_entry *list;
        size_t n;
        tg_error err = {0};
        CHECK_EQ(parse(cases[i].text, &list, &n, &err), TG_DATA);
        tg_check(strstr(err.msg, cases[i].says) != NULL, __FILE__, __LINE__, "%s: %s",
                 cases[i].says, err.msg);
        CHECK(list == NULL);
    }
}

TEST(a_bad_reload_keeps_the_old_list) {
    tg_allow *a;
    tg_error err = {0};
    tg_user user;
    uint8_t key[TG_KEY_BYTES];
    const char *path = path_of("allow.txt");
    CHECK(tg_key_decode(key, KEY_1, 40));
    write_file(path, KEY_1 " client a\n", 0644);
    REQUIRE_OK(tg_allow_open(&a, path, &err));
    CHECK(tg_allow_find(a, key, &user) && !strcmp(user.tenant, "a") && tg_allow_has(a, &user));
    write_file(path, "nonsense\n", 0644);
    CHECK_EQ(tg_allow_reload(a, &err), TG_DATA);
    CHECK(tg_allow_has(a, &user));
    CHECK_EQ(tg_allow_generation(a), 0);
    write_file(path, KEY_2 " client a\n", 0666);
    CHECK_EQ(tg_allow_reload(a, &err), TG_DENIED); /* others could add themselves */
    CHECK(tg_allow_has(a, &user));
    chmod(path, 0644);
    CHECK_OK(tg_allow_reload(a, &err));
    CHECK_EQ(tg_allow_generation(a), 1);
    CHECK(!tg_allow_has(a, &user) && !tg_allow_find(a, key, &user));
    write_file(path, KEY_1 " client b\n", 0644); /* the same key for another tenant */
    CHECK_OK(tg_allow_reload(a, &err));
    CHECK(!tg_allow_has(a, &user) && tg_allow_find(a, key, &user));
    tg_allow_close(&a);
    CHECK_EQ(tg_allow_open(&a, path_of("none"), &err), TG_NOINPUT);
}

TEST(users_and_roles) {
    tg_user u;
    char text[TG_USER_MAX];
    CHECK(tg_user_parse(&u, "client:team-a"));
    CHECK(tg_user_may(&u, TG_ROLE_CLIENT) && !tg_user_may(&u, TG_ROLE_WORKER));
    tg_user_text(&u, text);
    CHECK_STR(text, "client:team-a");
    CHECK(tg_user_parse(&u, "admin:x") && tg_user_may(&u, TG_ROLE_WORKER));
    CHECK(!tg_user_parse(&u, "client") && !tg_user_parse(&u, "boss:x"));
    CHECK(!tg_user_parse(&u, "client:") && !tg_user_parse(&u, "client:a b"));
    CHECK(!tg_user_may(&(tg_user){0}, TG_ROLE_CLIENT));
}

TEST(options_that_do_not_fit_together) {
    tg_security *sec;
    tg_error err = {0};
    CHECK_OK(tg_security_open(&sec, &(tg_security_opts){0}, &err));
    CHECK(sec == NULL);
    CHECK_EQ(tg_security_open(&sec, &(tg_security_opts){.allow = "x"}, &err), TG_USAGE);
    CHECK_EQ(tg_security_open(&sec, &(tg_security_opts){.server_key = "x"}, &err), TG_USAGE);
    CHECK_EQ(tg_security_open(&sec, &(tg_security_opts){.key = "/none"}, &err), TG_NOINPUT);
    CHECK(sec == NULL);
}

TEST_MAIN
