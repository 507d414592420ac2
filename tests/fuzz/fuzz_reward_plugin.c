/* The arguments of a plug-in on any bytes, and a plug-in that answers with bytes of its own: every text has a status, and a
 * number only with OK. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "env-server/reward/inner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* BUILD/plugin, beside BUILD/tests/fuzz where this program lies; $TEXTGEN_PLUGINS elsewhere. */
static const char *folder(void) {
    static char path[4096];
    const char *given = getenv("TEXTGEN_PLUGINS");
    if (given) return given;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    path[n > 0 ? n : 0] = 0;
    for (int i = 0; i < 3; i++)
        if (strrchr(path, '/')) *strrchr(path, '/') = 0;
    return strcat(path, "/plugin");
}

static void score(const tg_reward *r, const char *text, size_t len) {
    tg_error err = {0};
    tg_sample sample = {.id = "", .prompt_text = "p", .meta_json = ""};
    tg_reward_input in[3];
    tg_reward_value v[3];
    tg_reward_details d[3] = {{0}};
    for (int i = 0; i < 3; i++)
        in[i] = (tg_reward_input){
            .sample = &sample, .text = text, .text_len = len, .done = true, .details = &d[i]};
    TG_ASSERT(tg_reward_score(r, in, 3, v, &err) == TG_OK);
    for (int i = 0; i < 3; i++) {
        TG_ASSERT((v[i].status == TG_REWARD_OK) == (isfinite(v[i].value) != 0));
        tg_reward_details_fini(&d[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4096) return 0;
    tg_log_set_level(TG_LOG_ERROR);
    tg_arena arena = {0};
    tg_error err = {0};
    tg_buf yaml = {0};
    tg_node *root;
    tg_reward r;
    tg_buf_printf(
        &yaml,
        "id: plugin\nargs:\n  path: %s/fuzz_reward.so\n  max_wait_ms: 0\n  config: ", folder());
    tg_buf_append(&yaml, data, size);
    TG_ASSERT(!yaml.failed);
    tg_status st = tg_tree_parse(&arena, "fuzz.yml", yaml.data, yaml.len, &root, &err);
    if (st == TG_OK)
        st = tg_reward_open_section(&r, root, "reward_fn", &(tg_open_context){0}, &err);
    TG_ASSERT(st == TG_OK || (st == err.status && err.msg[0]));
    if (st == TG_OK) {
        score(&r, (const char *)data, size);
        tg_reward_close(&r);
    }
    tg_buf_fini(&yaml);
    tg_arena_fini(&arena);
    return 0;
}
