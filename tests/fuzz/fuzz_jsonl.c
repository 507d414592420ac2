/* The jsonl pool on any bytes: opens or gives a message with the file's name, never crashes; what was
 * checked at opening can be read, and reads the same twice. The first byte chooses the options. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "env-server/datapool/datapool.h"
#include "env-server/datapool/rows.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const variants[] = {
    "{}",
    "{on_error: skip}",
    "{check: lazy}",
    "{template: \"{a}{b.c} {{x}}\", on_error: skip}",
    "{prompt: a, references: b, id: c, meta: d}",
    "{prompt: a.b, weight: w, on_error: skip, max_size: 3}",
};

static void read_all(const tg_datapool *pool, bool checked) {
    tg_arena first = {0}, second = {0};
    tg_error err = {0};
    for (uint64_t i = 0; i < pool->count; i++) {
        tg_sample a, b;
        double weight;
        tg_arena_reset(&first);
        tg_arena_reset(&second);
        tg_status st = tg_datapool_get(pool, i, &first, &a, &err);
        TG_ASSERT(!checked || st == TG_OK);
        if (st != TG_OK) continue;
        TG_ASSERT(tg_datapool_get(pool, i, &second, &b, &err) == TG_OK);
        TG_ASSERT(!strcmp(a.prompt_text, b.prompt_text) && !strcmp(a.id, b.id));
        TG_ASSERT(a.n_references == b.n_references && !strcmp(a.meta_json, b.meta_json));
        st = pool->ops->weight(pool->state, i, &weight, &err);
        TG_ASSERT(!checked || st == TG_OK);
    }
    tg_arena_fini(&first);
    tg_arena_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    tg_log_set_level(TG_LOG_ERROR);
    size_t variant = data[0] % TG_COUNT_OF(variants);
    char yaml[256], path[32];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    if (write(fd, data + 1, size - 1) != (ssize_t)(size - 1)) {
        close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    snprintf(yaml, sizeof yaml, "{id: jsonl, args: %s}", variants[variant]);
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *root;
    tg_choice choice;
    tg_datapool pool;
    TG_ASSERT(tg_tree_parse(&arena, "fuzz", yaml, strlen(yaml), &root, &err) == TG_OK);
    char assignment[64];
    snprintf(assignment, sizeof assignment, "args.path=%s", path);
    TG_ASSERT(tg_tree_override(&arena, root, assignment, &err) == TG_OK);
    TG_ASSERT(tg_choice_read(tg_datapool_registry(), root, "datapool", &arena, &choice, &err) ==
              TG_OK);
    tg_status st =
        tg_datapool_open(&pool, &tg_datapool_jsonl, choice.options, NULL, TG_SPLIT_TRAIN, &err);
    TG_ASSERT(st == TG_OK || (err.status == st && strstr(err.msg, path)));
    if (st == TG_OK) read_all(&pool, variant != 2);
    tg_datapool_close(&pool);
    tg_arena_fini(&arena);
    close(fd);
    return 0;
}
