/* Config text: loads or gives a message, never crashes; what it prints as JSON loads to the same
 * JSON. */
#include "common/base/check.h"
#include "common/config/run_config.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const tg_node *root) {
    tg_buf first = {0}, second = {0};
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *again;
    tg_node_json(root, &first);
    TG_ASSERT(!first.failed);
    TG_ASSERT(tg_tree_parse(&arena, "again", first.data, first.len, &again, &err) == TG_OK ||
              first.len > 4 << 20);
    if (again) {
        tg_node_json(again, &second);
        TG_ASSERT(!strcmp(first.data, second.data));
    }
    tg_arena_fini(&arena);
    tg_buf_fini(&first);
    tg_buf_fini(&second);
}

/* The first line is an override (when it has the form of one), the rest is the config. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "fuzz", (const char *)data, size, &root, &err);
    TG_ASSERT(st == TG_OK || (err.status == st && err.msg[0]));
    if (st == TG_OK) {
        check_round_trip(root);
        const char *newline = size ? memchr(data, '\n', size) : NULL;
        char line[200] = {0};
        size_t len = newline ? (size_t)(newline - (const char *)data) : 0;
        if (len && len < sizeof line) {
            memcpy(line, data, len);
            st = tg_tree_override(&arena, root, line, &err);
            if (st == TG_OK) check_round_trip(root);
        }
        tg_run_config config;
        if (tg_run_config_init(&config, &arena, root, &err) == TG_OK) {
            tg_buf text = {0};
            tg_run_config_json(&config, NULL, 0, &text);
            tg_buf_fini(&text);
            tg_run_config_fini(&config);
        }
    }
    tg_arena_fini(&arena);
    return 0;
}
