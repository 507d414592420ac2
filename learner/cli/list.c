/* `textgen-learner list`: every registry of the learner as {kind, name, summary, built, options}. */
#include "common/base/buf.h"
#include "common/config/args.h"
#include "common/config/option.h"
#include "common/nn/backend.h"
#include "common/nn/family/family.h"
#include "learner/cli/commands.h"
#include "learner/rl/algo.h"
#include "learner/track/track.h"
#include "learner/train/optimizer_id.h"
#include "learner/train/policy_id.h"
#include "learner/train/settings.h"

#include <stdio.h>
#include <string.h>

typedef struct listing {
    tg_buf out;
    const char *kind; /* NULL: all */
    bool any;
} listing;

/* "algorithms" is the same as "algorithm". */
static bool wanted(const listing *l, const char *kind) {
    size_t n = strlen(kind);
    return !l->kind || (!strncmp(l->kind, kind, n) && (!l->kind[n] || !strcmp(l->kind + n, "s")));
}

static void put(tg_buf *b, const char *key, const char *text) {
    tg_buf_printf(b, "\"%s\": ", key);
    tg_json_string(b, text, strlen(text));
    tg_buf_puts(b, ", ");
}

static void entry(listing *l, const char *kind, const char *name, const char *summary, bool built,
                  const tg_opt *options) {
    if (!wanted(l, kind)) return;
    tg_buf_puts(&l->out, l->any ? ",\n {" : "\n {");
    l->any = true;
    put(&l->out, "kind", kind);
    put(&l->out, "name", name);
    put(&l->out, "summary", summary);
    tg_buf_printf(&l->out, "\"built\": %s, \"options\": ", built ? "true" : "false");
    if (options)
        tg_opts_describe_json(options, &l->out);
    else
        tg_buf_puts(&l->out, "[]");
    tg_buf_puts(&l->out, "}");
}

static void all_entries(listing *l) {
    for (const tg_algo_ops *const *a = tg_algo_list(); *a; a++)
        entry(l, "algorithm", (*a)->name, (*a)->summary, (*a)->built, (*a)->options);
    entry(l, "algorithm", "supervised", "next-token training on prompt and reference", true,
          tg_supervised_options);
    for (const tg_policy_id *const *p = tg_policy_id_list(); *p; p++)
        entry(l, "policy", (*p)->name, (*p)->summary, (*p)->built, (*p)->options);
    for (const tg_optimizer_id *const *o = tg_optimizer_id_list(); *o; o++)
        entry(l, "optimizer", (*o)->name, (*o)->summary, (*o)->kind != NULL, (*o)->options);
    entry(l, "kl controller", "adaptive", "follows kl_div.target_kl, at most 2% a step", true,
          tg_kl_options);
    entry(l, "kl controller", "fixed", "keeps kl_div.coeff (target_kl: null)", true, tg_kl_options);
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++)
        entry(l, "backend", (*b)->name, (*b)->summary, true, NULL);
    for (const tg_family *const *f = tg_family_list(); *f; f++)
        entry(l, "family", (*f)->name, (*f)->summary, true, NULL);
    for (const tg_tracker_ops *const *t = tg_tracker_list(); *t; t++)
        entry(l, "tracker", (*t)->name, (*t)->summary, true, NULL);
}

int tg_learner_list(int argc, char **argv) {
    bool json = true;
    const tg_flag flags[] = {
        {"json", TG_FLAG_SWITCH, &json, NULL, "A JSON array (the only form here)."}, {0}};
    const tg_args_spec spec = {
        .name = "textgen-learner list",
        .usage = "[KIND] [--json]",
        .summary = "Lists algorithms, policies, optimizers, KL controllers, backends, model "
                   "families and trackers.",
        .flags = flags,
        .examples = "  textgen-learner list --json algorithm\n",
        .max_positional = 1};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report("textgen-learner", &err);
    tg_status st = TG_OK;
    if (!args.help) {
        listing l = {.kind = args.n_positional ? args.positional[0] : NULL};
        tg_buf_puts(&l.out, "[");
        all_entries(&l);
        tg_buf_puts(&l.out, "\n]\n");
        if (l.out.failed)
            st = tg_fail_nomem(&err, l.out.len);
        else if (l.kind && !l.any)
            st = tg_fail(&err, TG_USAGE,
                         "unknown kind \"%s\"; kinds are algorithm, policy, optimizer, kl "
                         "controller, backend, family, "
                         "tracker",
                         l.kind);
        else
            fputs(l.out.data, stdout);
        tg_buf_fini(&l.out);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report("textgen-learner", &err);
}
