/* Opening of rewards that stand in another one's options. The options only live while it is opened. */
#include "env-server/reward/inner.h"

#include <string.h>

tg_status tg_reward_open_section(tg_reward *out, const tg_node *section, const char *path,
                                 const tg_open_context *ctx, tg_error *err) {
    memset(out, 0, sizeof *out);
    tg_arena arena = {0};
    tg_choice c;
    tg_status st = tg_choice_read(tg_reward_registry(), section, path, &arena, &c, err);
    if (st == TG_OK) st = tg_choice_require_built(&c, err);
    if (st == TG_OK) st = tg_reward_open(out, (const tg_reward_ops *)c.entry, c.options, ctx, err);
    tg_arena_fini(&arena);
    return st;
}
