/* Answers of programs and HTTP servers on any bytes: each becomes results with a status, numbers only where that is OK, or
 * a message. Secret headers on any bytes: headers, or a message that shows nothing of them. The first byte chooses. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "env-server/reward/http_headers.h"
#include "env-server/reward/score_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_answer(const char *text, size_t len, size_t n, const uint64_t *id) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_score_result results[4] = {{0}};
    tg_status st = tg_score_json_read(text, len, id, n, results, &arena, &err);
    TG_ASSERT(st == TG_OK || (st == err.status && err.msg[0]));
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        const tg_score_result *r = &results[i];
        TG_ASSERT(r->status == TG_REWARD_OK || r->status == TG_REWARD_FAILED ||
                  r->status == TG_REWARD_INVALID);
        TG_ASSERT((r->status == TG_REWARD_OK) == (isfinite(r->value) != 0));
        TG_ASSERT(r->status == TG_REWARD_OK || r->message);
        for (size_t k = 0; k < r->n_components; k++)
            TG_ASSERT((r->components[k].status == TG_REWARD_OK) ==
                      (isfinite(r->components[k].value) != 0));
    }
    tg_arena_fini(&arena);
}

static void read_headers(const char *text, size_t len) {
    char *copy = strndup(text, len);
    struct curl_slist *list = NULL;
    tg_error err = {0};
    TG_ASSERT(copy);
    setenv("TG_FUZZ_HEADERS", copy, 1);
    tg_status st = tg_http_headers_make(&list, NULL, NULL, "TG_FUZZ_HEADERS", &err);
    TG_ASSERT(st == TG_OK || strstr(err.msg, "is not a header"));
    tg_http_headers_free(list);
    free(copy);
}

/* What is written can be read again by any JSON reader, ours included, as one line. */
static void write_request(const char *text, size_t len) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_score_text t;
    char *copy = tg_arena_strndup(&arena, text, len);
    const char *refs[] = {copy};
    tg_sample sample = {
        .prompt_text = copy, .meta_json = copy, .references = refs, .n_references = 1};
    tg_reward_input in = {.sample = &sample, .text = text, .text_len = len, .done = true};
    TG_ASSERT(copy && tg_score_text_copy(&t, &in, &arena, &err) == TG_OK);
    const tg_score_text *list[] = {&t};
    tg_score_call call = {.texts = list, .n = 1};
    tg_buf out = {0};
    tg_score_json_write(&out, 3, &call);
    TG_ASSERT(!out.failed && !memchr(out.data, '\n', out.len));
    tg_score_result r = {0};
    TG_ASSERT(tg_score_json_read(out.data, out.len, NULL, 1, &r, &arena, &err) == TG_DATA);
    TG_ASSERT(strstr(err.msg, "results")); /* an object it is */
    tg_buf_fini(&out);
    tg_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > 65536) return 0;
    tg_log_set_level(TG_LOG_ERROR);
    const char *text = (const char *)data + 1;
    uint64_t id = 5;
    switch (data[0] % 4) {
    case 0: read_answer(text, size - 1, 1 + (data[0] >> 2) % 4, &id); break;
    case 1: read_answer(text, size - 1, 1 + (data[0] >> 2) % 4, NULL); break;
    case 2: read_headers(text, size - 1); break;
    default: write_request(text, size - 1);
    }
    return 0;
}
