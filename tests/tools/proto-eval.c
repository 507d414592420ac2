/* The codec for comparison with another implementation of the same schema.
 *
 *     proto-eval random SEED N   N lines: type name, payload in hex, content as JSON
 *     proto-eval decode          for each line "TYPE HEX" on stdin: the content, or "error MESSAGE"
 *     proto-eval corpus DIR SEED small random payloads and frames as files for the fuzzers */
#include "common/base/file.h"
#include "common/base/str.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/msg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_hex(const tg_buf *b) {
    for (size_t i = 0; i < b->len; i++) printf("%02x", (unsigned char)b->data[i]);
}

static int random_messages(uint64_t seed, int64_t n) {
    tg_rng r = tg_rng_at(seed, TG_RNG_TEST, 7, 7);
    for (int64_t i = 0; i < n; i++) {
        tg_msg_type type = (tg_msg_type)(TG_TEST_MSG_FIRST + i % TG_TEST_MSG_LAST);
        tg_arena a = {0};
        tg_buf bytes = {0}, json = {0};
        tg_error err;
        void *msg = tg_test_msg_random(&a, &r, type);
        if (tg_msg_encode(type, msg, &bytes, &err) != TG_OK) {
            fprintf(stderr, "proto-eval: %s\n", err.msg);
            return 1;
        }
        tg_test_msg_print(type, msg, &json);
        printf("%s ", tg_msg_name(type));
        print_hex(&bytes);
        printf(" %s\n", json.data);
        tg_buf_fini(&bytes);
        tg_buf_fini(&json);
        tg_arena_fini(&a);
    }
    return 0;
}

static tg_msg_type type_named(const char *name) {
    for (int t = TG_TEST_MSG_FIRST; t <= TG_TEST_MSG_LAST; t++) {
        if (!strcmp(tg_msg_name((tg_msg_type)t), name)) return (tg_msg_type)t;
    }
    return (tg_msg_type)0;
}

static void decode_line(char *line) {
    char *hex = strchr(line, ' ');
    if (!hex) {
        puts("error expected: TYPE HEX");
        return;
    }
    *hex++ = '\0';
    tg_buf bytes = {0}, json = {0};
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2) tg_buf_putc(&bytes, (char)byte);
    void *msg = NULL;
    tg_error err;
    tg_msg_type type = type_named(line);
    if (tg_msg_decode(type, bytes.data, bytes.len, &msg, &err) == TG_OK) {
        tg_test_msg_print(type, msg, &json);
        puts(json.data);
    } else {
        printf("error %s\n", err.msg);
    }
    tg_msg_free(msg);
    tg_buf_fini(&bytes);
    tg_buf_fini(&json);
}

static int decode_lines(void) {
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        decode_line(line);
    }
    free(line);
    return 0;
}

static int write_file(const char *dir, const char *kind, const char *name, const tg_buf *b) {
    char path[512];
    tg_error err;
    snprintf(path, sizeof path, "%s/%s/%s", dir, kind, name);
    if (tg_file_write_atomic(path, b->data, b->len, &err) == TG_OK) return 0;
    fprintf(stderr, "proto-eval: %s\n", err.msg);
    return 1;
}

/* The first small message of each type that is not empty. */
static int write_corpus(const char *dir, uint64_t seed) {
    tg_rng r = tg_rng_at(seed, TG_RNG_TEST, 8, 8);
    for (int t = TG_TEST_MSG_FIRST; t <= TG_TEST_MSG_LAST; t++) {
        tg_arena a = {0};
        tg_buf payload = {0}, frame = {0};
        tg_msg_type type = (tg_msg_type)t;
        for (int tries = 0; tries < 1000; tries++) {
            tg_arena_reset(&a);
            tg_buf_reset(&payload);
            tg_buf_reset(&frame);
            tg_buf_putc(&payload, (char)t);
            tg_buf_putc(&frame, (char)(t & 1));
            void *msg = tg_test_msg_random(&a, &r, type);
            if (tg_msg_encode(type, msg, &payload, NULL) != TG_OK) return 1;
            if (tg_frame_encode(&(tg_frame){type, 0, 5, 6}, msg, &frame, NULL) != TG_OK) return 1;
            if (payload.len > 20 && payload.len < 500) break;
        }
        if (write_file(dir, "codec", tg_msg_name(type), &payload)) return 1;
        if (write_file(dir, "frame", tg_msg_name(type), &frame)) return 1;
        tg_buf_fini(&payload);
        tg_buf_fini(&frame);
        tg_arena_fini(&a);
    }
    return 0;
}

int main(int argc, char **argv) {
    int64_t seed = 0, n = 0;
    if (argc == 4 && !strcmp(argv[1], "random") && tg_parse_i64(argv[2], &seed) &&
        tg_parse_i64(argv[3], &n)) {
        return random_messages((uint64_t)seed, n);
    }
    if (argc == 2 && !strcmp(argv[1], "decode")) return decode_lines();
    if (argc == 4 && !strcmp(argv[1], "corpus") && tg_parse_i64(argv[3], &seed)) {
        return write_corpus(argv[2], (uint64_t)seed);
    }
    fprintf(stderr, "usage: proto-eval random SEED N | decode | corpus DIR SEED\n");
    return 64;
}
