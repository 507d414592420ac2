/* textgen-env list: the registries of data pools, rewards and metrics. */
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/config/listing.h"
#include "env-server/cli/commands.h"
#include "env-server/cli/load.h"
#include "env-server/datapool/datapool.h"
#include "env-server/metric/metric.h"
#include "env-server/reward/reward.h"

#include <string.h>

static void entry_text(const tg_entry *e, tg_buf *out) {
    tg_buf_printf(out, "  %-34s %s%s\n", e->name, e->summary,
                  e->built ? "" : " (known, not built)");
    tg_buf options = {0};
    tg_opts_describe(e->options, &options);
    for (const char *line = options.data; line && *line;) {
        size_t n = strcspn(line, "\n");
        tg_buf_printf(out, "      %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    tg_buf_fini(&options);
}

static tg_status list(const char *kind, bool json, tg_error *err) {
    const tg_registry *all[] = {tg_datapool_registry(), tg_reward_registry(), tg_metric_registry()};
    tg_buf out = {0};
    bool found = false;
    size_t n = 0;
    for (size_t k = 0; k < TG_COUNT_OF(all); k++) {
        if (!tg_kind_is(all[k]->kind, kind)) continue;
        found = true;
        if (!json) tg_buf_printf(&out, "%s\n", all[k]->kind);
        const tg_entry *e;
        for (size_t i = 0; (e = tg_registry_at(all[k], i)); i++) {
            const tg_listed row = {all[k]->kind, e->name, e->summary, e->built, e->options};
            if (json)
                tg_listed_json(&row, &n, &out);
            else
                entry_text(e, &out);
        }
    }
    if (json && found) tg_buf_puts(&out, "\n]\n");
    tg_status st = found ? tg_stdout_write(&out, err)
                         : tg_fail(err, TG_USAGE,
                                   "unknown kind \"%s\"; known: datapool, reward, metric", kind);
    tg_buf_fini(&out);
    return st;
}

int tg_command_list(int argc, char **argv) {
    bool json = false;
    const tg_flag flags[] = {{"json", TG_FLAG_SWITCH, &json, NULL, "As a JSON array."}, {0}};
    const tg_args_spec spec = {"textgen-env list",
                               "[KIND] [--json]",
                               "Lists data pools, rewards and metrics with their options.",
                               flags,
                               "  textgen-env list rewards\n  textgen-env list --json datapool\n",
                               0,
                               1,
                               true};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) st = list(args.n_positional ? args.positional[0] : NULL, json, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
