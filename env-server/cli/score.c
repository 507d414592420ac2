/* textgen score: metrics and rewards of texts in a file, without a model or a config. */
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/json.h"
#include "env-server/cli/commands.h"
#include "env-server/cli/load.h"
#include "env-server/cli/texts.h"
#include "env-server/judge/judge.h"
#include "env-server/reward/reward.h"

#include <math.h>
#include <string.h>

enum { MAX_CHOSEN = 64 };

typedef struct chosen {
    const tg_registry *registry;
    tg_choice items[MAX_CHOSEN];
    size_t n;
} chosen;

/* "rouge,bleu": ids, with the options that key=value arguments give them ("rouge.use_single_ref=false"). */
static tg_status choose(chosen *c, const char *names, const tg_node *options, tg_arena *arena,
                        tg_error *err) {
    while (names && *names) {
        size_t n = strcspn(names, ",");
        char *id = tg_arena_strndup(arena, names, n);
        tg_node *section = tg_arena_alloc(arena, sizeof *section),
                **parts = tg_arena_array(arena, 2, sizeof *parts);
        if (!id || !section || !parts || !(parts[0] = tg_arena_alloc(arena, sizeof **parts)) ||
            !(parts[1] = tg_arena_alloc(arena, sizeof **parts)))
            return tg_fail_nomem(err, n);
        const tg_node *args = tg_node_get(options, id);
        *parts[0] = (tg_node){.kind = TG_NODE_SCALAR,
                              .key = "id",
                              .text = id,
                              .quoted = true,
                              .file = "command line"};
        *parts[1] = args ? *args : (tg_node){.kind = TG_NODE_NULL};
        parts[1]->key = "args";
        *section =
            (tg_node){.kind = TG_NODE_MAP, .items = parts, .n_items = 2, .file = "command line"};
        if (c->n == MAX_CHOSEN)
            return tg_fail(err, TG_USAGE, "more than %d %ss", MAX_CHOSEN, c->registry->kind);
        tg_status st =
            tg_choice_read(c->registry, section, c->registry->kind, arena, &c->items[c->n], err);
        if (st == TG_OK) st = tg_choice_require_built(&c->items[c->n], err);
        if (st != TG_OK) return st;
        c->n++;
        names += n + (names[n] == ',');
    }
    return TG_OK;
}

/* Every option must belong to something that was chosen. */
static tg_status check_options(const tg_node *options, const chosen *metrics, const chosen *rewards,
                               tg_error *err) {
    for (size_t i = 0; i < options->n_items; i++) {
        const tg_node *n = options->items[i];
        bool known = false;
        if (!strcmp(n->key, "compat")) {
            known = n->kind == TG_NODE_SCALAR && !strcmp(n->text, "rl4lms");
            if (!known) return tg_node_fail(n, "compat", err, "expected rl4lms");
        }
        for (size_t k = 0; k < metrics->n; k++)
            known |= !strcmp(n->key, metrics->items[k].entry->name);
        for (size_t k = 0; k < rewards->n; k++)
            known |= !strcmp(n->key, rewards->items[k].entry->name);
        if (!known)
            return tg_fail(err, TG_USAGE,
                           "\"%s\" is neither compat nor a metric or reward that was asked for",
                           n->key);
    }
    return TG_OK;
}

static tg_status compute_metrics(const chosen *c, const tg_open_context *ctx, const tg_texts *t,
                                 int threads, tg_metric_out *out, tg_error *err) {
    tg_metric_input in = {t->items, t->n, TG_SPLIT_TEST, threads};
    tg_status st = TG_OK;
    for (size_t k = 0; k < c->n && st == TG_OK; k++) {
        tg_metric m;
        st = tg_metric_open(&m, (const tg_metric_ops *)c->items[k].entry, c->items[k].options, ctx,
                            err);
        if (st != TG_OK) break;
        st = tg_metric_compute(&m, &in, out, err);
        tg_metric_close(&m);
    }
    return st;
}

/* values: (n of texts) per chosen reward. */
static tg_status compute_rewards(const chosen *c, const tg_open_context *ctx, const tg_texts *t,
                                 tg_reward_value **values, tg_arena *arena, tg_error *err) {
    for (size_t k = 0; k < c->n; k++) {
        tg_reward r;
        values[k] = tg_arena_array(arena, t->n, sizeof **values);
        tg_reward_input *in = tg_arena_array(arena, t->n, sizeof *in);
        if (!values[k] || !in) return tg_fail_nomem(err, t->n * sizeof *in);
        for (size_t i = 0; i < t->n; i++)
            in[i] = (tg_reward_input){.sample = t->items[i].sample,
                                      .text = t->items[i].text,
                                      .text_len = t->items[i].text_len,
                                      .done = true};
        tg_status st = tg_reward_open(&r, (const tg_reward_ops *)c->items[k].entry,
                                      c->items[k].options, ctx, err);
        if (st != TG_OK) return st;
        st = tg_reward_score(&r, in, t->n, values[k], err);
        tg_reward_close(&r);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

static void list_json(tg_buf *out, const double *values, size_t n) {
    tg_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_json_number(out, values[i]);
    }
    tg_buf_putc(out, ']');
}

static void result_json(const tg_metric_out *m, const chosen *rewards,
                        tg_reward_value *const *values, size_t n, tg_buf *out) {
    tg_buf_puts(out, "{\"metrics\": {");
    for (size_t i = 0; i < m->n; i++) {
        const tg_metric_value *v = &m->values[i];
        if (i) tg_buf_puts(out, ", ");
        tg_json_string(out, v->key, strlen(v->key));
        tg_buf_puts(out, ": {\"corpus\": ");
        tg_json_number(out, v->has_corpus ? v->corpus : (double)NAN);
        tg_buf_puts(out, ", \"samples\": ");
        if (v->samples)
            list_json(out, v->samples, v->n_samples);
        else
            tg_buf_puts(out, "null");
        if (*v->error) {
            tg_buf_puts(out, ", \"error\": ");
            tg_json_string(out, v->error, strlen(v->error));
        }
        tg_buf_putc(out, '}');
    }
    tg_buf_puts(out, "}, \"rewards\": {");
    for (size_t k = 0; k < rewards->n; k++) {
        const char *name = rewards->items[k].entry->name;
        if (k) tg_buf_puts(out, ", ");
        tg_json_string(out, name, strlen(name));
        tg_buf_puts(out, ": [");
        for (size_t i = 0; i < n; i++) {
            if (i) tg_buf_puts(out, ", ");
            tg_json_number(out, values[k][i].value);
        }
        tg_buf_putc(out, ']');
    }
    tg_buf_puts(out, "}}\n");
}

static void result_text(const tg_metric_out *m, const chosen *rewards,
                        tg_reward_value *const *values, size_t n, tg_buf *out) {
    char title[64];
    snprintf(title, sizeof title, "of %zu text%s", n, n == 1 ? "" : "s");
    tg_buf_printf(out, "%-44s %12s\n", title, "value");
    for (size_t i = 0; i < m->n; i++) {
        const tg_metric_value *v = &m->values[i];
        if (v->has_corpus)
            tg_buf_printf(out, "%-44s %12.6f\n", v->key, v->corpus);
        else
            tg_buf_printf(out, "%-44s %12s  %s\n", v->key, "none", v->error);
    }
    for (size_t k = 0; k < rewards->n; k++) {
        double sum = 0;
        size_t good = 0;
        for (size_t i = 0; i < n; i++)
            if (values[k][i].status == TG_REWARD_OK) sum += values[k][i].value, good++;
        tg_buf_printf(out, "reward %-37s %12.6f  mean of %zu of %zu texts\n",
                      rewards->items[k].entry->name, good ? sum / (double)good : (double)NAN, good,
                      n);
    }
}

typedef struct request {
    const char *metrics, *rewards; /* ids between commas; NULL: none */
    const char *jsonl;             /* NULL: stdin, unless there are predictions */
    tg_texts_files files;
    tg_flag_list references;
    int64_t threads;
    bool json;
    const char *json_file; /* NULL: stdout */
} request;

static tg_status check_request(const request *r, const tg_args *args, tg_error *err) {
    if (!r->metrics && !r->rewards)
        return tg_fail(
            err, TG_USAGE,
            "nothing to compute: give --metric A,B or --reward C (`textgen list` shows them)");
    if (r->files.predictions && r->jsonl)
        return tg_fail(err, TG_USAGE, "--pred and --jsonl: give one of them");
    if (!r->files.predictions && (r->references.n || r->files.prompts))
        return tg_fail(err, TG_USAGE, "--ref and --prompt belong to --pred FILE");
    if (args->n_positional && !r->json)
        return tg_fail(err, TG_USAGE, "unexpected argument \"%s\"; --json FILE writes JSON",
                       args->positional[0]);
    if (r->threads < 0 || r->threads > 1024)
        return tg_fail(err, TG_USAGE, "--threads: expected 1 to 1024, or 0 for all, found %lld",
                       (long long)r->threads);
    return TG_OK;
}

/* With --json the JSON goes to stdout, or to a file beside the table. */
static tg_status write_results(const request *r, const tg_metric_out *values, const chosen *rewards,
                               tg_reward_value *const *reward_values, size_t n, tg_error *err) {
    tg_buf out = {0};
    tg_status st = TG_OK;
    if (r->json) {
        result_json(values, rewards, reward_values, n, &out);
        if (out.failed)
            st = tg_fail_nomem(err, out.len);
        else if (r->json_file)
            st = tg_file_write_atomic(r->json_file, out.data, out.len, err);
    }
    if (!r->json || r->json_file) {
        tg_buf_reset(&out);
        result_text(values, rewards, reward_values, n, &out);
    }
    if (st == TG_OK) st = tg_stdout_write(&out, err);
    tg_buf_fini(&out);
    return st;
}

/* What was asked for and could not be had is a failure, but everything else has been written by then. */
static tg_status check_values(const tg_metric_out *m, tg_error *err) {
    char why[TG_ERROR_MAX] = "";
    for (size_t i = 0; i < m->n; i++) {
        const tg_metric_value *v = &m->values[i];
        if (v->has_corpus) continue; /* NaN is a value: the diversity of texts that are too short */
        size_t at = strlen(why);
        snprintf(why + at, sizeof why - at, "%s%s (%s)", at ? ", " : "", v->key, v->error);
    }
    return *why ? tg_fail(err, TG_DATA, "no value: %s", why) : TG_OK;
}

static tg_status compute(request *r, const tg_open_context *ctx, const chosen *metrics,
                         const chosen *rewards, tg_arena *arena, tg_error *err) {
    tg_texts texts;
    r->files.references = r->references.v, r->files.n_references = r->references.n;
    tg_status st = r->files.predictions ? tg_texts_read_files(&texts, &r->files, err)
                                        : tg_texts_read(&texts, r->jsonl, err);
    if (st != TG_OK) return st;
    tg_metric_out values = {.arena = arena};
    tg_reward_value *reward_values[MAX_CHOSEN] = {0};
    int threads = r->threads ? (int)r->threads : TG_METRIC_ALL_THREADS;
    st = compute_metrics(metrics, ctx, &texts, threads, &values, err);
    if (st == TG_OK) st = compute_rewards(rewards, ctx, &texts, reward_values, arena, err);
    if (st == TG_OK) st = write_results(r, &values, rewards, reward_values, texts.n, err);
    if (st == TG_OK) st = check_values(&values, err);
    tg_texts_fini(&texts);
    return st;
}

static tg_status score(request *r, const tg_args *args, tg_arena *arena, tg_error *err) {
    chosen metrics = {.registry = tg_metric_registry()},
           rewards = {.registry = tg_reward_registry()};
    tg_node *options;
    tg_status st = check_request(r, args, err);
    if (st == TG_OK) st = tg_tree_parse(arena, "command line", "{}", 2, &options, err);
    for (size_t i = 0; i < args->n_overrides && st == TG_OK; i++)
        st = tg_tree_override(arena, options, args->overrides[i], err);
    if (st == TG_OK) st = choose(&metrics, r->metrics, options, arena, err);
    if (st == TG_OK) st = choose(&rewards, r->rewards, options, arena, err);
    if (st == TG_OK) st = check_options(options, &metrics, &rewards, err);
    if (st != TG_OK) return st;
    /* check_options has seen to it that compat can only be rl4lms. */
    tg_judges *judges;
    st = tg_judges_create(&judges, (int)r->threads, err);
    if (st != TG_OK) return st;
    const tg_open_context ctx = {.compat = tg_node_get(options, "compat") != NULL,
                                 .judges = judges};
    st = compute(r, &ctx, &metrics, &rewards, arena, err);
    tg_judges_destroy(&judges);
    return st;
}

int tg_command_score(int argc, char **argv) {
    request r = {.threads = 1};
    const tg_flag flags[] = {
        {"metric", TG_FLAG_STR, &r.metrics, "A,B", "Metrics to compute."},
        {"reward", TG_FLAG_STR, &r.rewards, "C", "Rewards to compute, as of finished episodes."},
        {"pred", TG_FLAG_STR, &r.files.predictions, "FILE",
         "Texts to judge, one a line; a .jsonl file has a JSON text or object a line."},
        {"ref", TG_FLAG_LIST, &r.references, "FILE",
         "References, line by line with --pred; in .jsonl also lists. May be given several times."},
        {"prompt", TG_FLAG_STR, &r.files.prompts, "FILE", "Prompts, line by line with --pred."},
        {"jsonl", TG_FLAG_STR, &r.jsonl, "FILE",
         "All in one: {\"prediction\", \"references\", \"prompt\", \"meta\"} a line (stdin)."},
        {"threads", TG_FLAG_INT, &r.threads, "N", "Threads of metrics (1); 0: all processors."},
        {"json", TG_FLAG_SWITCH, &r.json, NULL,
         "One JSON object with corpus values and values per text; --json FILE: into a file."},
        {0}};
    const tg_args_spec spec = {
        "textgen score",
        "--metric A,B [--reward C] [--pred FILE --ref FILE… | --jsonl FILE] [--json [FILE]] "
        "[id.option=value…]",
        "Computes metrics and rewards of texts. When a metric has no value, stderr says why and "
        "the\n"
        "exit code is 65; the others are printed all the same.",
        flags,
        "  textgen score --metric rouge,bleu,meteor --pred out.txt --ref ref.txt\n"
        "  textgen score --metric sacre_bleu,chrf --pred out.txt --ref a.txt --ref b.txt "
        "sacre_bleu.tokenize=intl --json scores.json\n"
        "  textgen score --metric rouge --pred out.jsonl --ref refs.jsonl --threads 0 "
        "compat=rl4lms\n"
        "  echo '{\"prediction\": \"1 2 3\"}' | textgen score --metric increasing_numbers "
        "increasing_numbers.min_tokens=20\n"
        "  textgen score --metric dates --reward sentences_with_dates --jsonl texts.jsonl "
        "--json\n",
        0,
        1,
        false};
    tg_args args;
    tg_error err = {0};
    tg_arena arena = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (args.n_positional) r.json_file = args.positional[0];
    if (!args.help) st = score(&r, &args, &arena, &err);
    tg_args_fini(&args);
    tg_arena_fini(&arena);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
