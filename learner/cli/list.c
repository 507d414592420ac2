/* `textgen-learner list`: every registry of the learner as {kind, name, summary, built, options}. */
#include "common/base/file.h"
#include "common/config/args.h"
#include "common/config/listing.h"
#include "common/nn/backend.h"
#include "common/nn/family/family.h"
#include "learner/cli/commands.h"
#include "learner/rl/algo.h"
#include "learner/track/track.h"
#include "learner/train/optimizer_id.h"
#include "learner/train/policy_id.h"
#include "learner/train/settings.h"

typedef struct listing {
    tg_buf out;
    const char *kind; /* NULL: all */
    size_t n;
} listing;

static void entry(listing *l, const char *kind, const char *name, const char *summary, bool built,
                  const tg_opt *options) {
    const tg_listed row = {kind, name, summary, built, options};
    if (tg_kind_is(kind, l->kind)) tg_listed_json(&row, &l->n, &l->out);
}

static void all_entries(listing *l) {
    for (const tg_algo_ops *const *a = tg_algo_list(); *a; a++)
        entry(l, "algorithm", (*a)->name, (*a)->summary, true, (*a)->options);
    entry(l, "algorithm", "supervised", "next-token training on prompt and reference", true,
          tg_supervised_options);
    for (const tg_policy_id *const *p = tg_policy_id_list(); *p; p++)
        entry(l, "policy", (*p)->name, (*p)->summary, true, (*p)->options);
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

static tg_status list(const char *kind, tg_error *err) {
    listing l = {.kind = kind};
    all_entries(&l);
    tg_buf_puts(&l.out, "\n]\n");
    tg_status st = l.n ? tg_stdout_write(&l.out, err)
                       : tg_fail(err, TG_USAGE,
                                 "unknown kind \"%s\"; kinds are algorithm, policy, optimizer, kl "
                                 "controller, backend, family, tracker",
                                 kind);
    tg_buf_fini(&l.out);
    return st;
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
    tg_status st = args.help ? TG_OK : list(args.n_positional ? args.positional[0] : NULL, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report("textgen-learner", &err);
}
