/* Lines are gathered into packed batches and scored in one pass each; results are printed in the order of the lines. */
#include "learner/cli/logprob.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/jsonl.h"
#include "common/nn/pass.h"
#include "learner/cli/line_ids.h"
#include "learner/cli/open_model.h"

#include <string.h>

enum { MAX_LINES = 256, MIN_TOKENS = 4096 };

typedef struct entry {
    long number;
    int first, n; /* tokens of the batch; n < 0: the line was bad, why says how */
    char why[256];
} entry;

typedef struct job {
    tg_cli_model model;
    tg_pass *pass;
    int max_tokens;
    entry entries[MAX_LINES];
    int n_entries;
    tg_ids tokens;
    int32_t offsets[MAX_LINES + 1];
    int32_t *act_row, *act_token; /* (max_tokens) */
    float *logp, *entropy;
    tg_buf out;
} job;

static void print_numbers(tg_buf *out, const char *key, const float *values, int n) {
    tg_buf_printf(out, "\"%s\": [null",
                  key); /* nothing comes before a causal model's first token */
    for (int i = 0; i < n; i++) {
        tg_buf_puts(out, ", ");
        tg_json_number(out, (double)values[i]);
    }
    tg_buf_putc(out, ']');
}

static void print_entry(job *j, const entry *e, int *at) {
    if (e->n < 0) {
        tg_jsonl_put_error(&j->out, e->number, e->why);
        return;
    }
    if (e->n == 0) {
        tg_buf_puts(&j->out, "{\"logprob\": [], \"entropy\": []}\n");
        return;
    }
    tg_buf_putc(&j->out, '{');
    print_numbers(&j->out, "logprob", j->logp + *at, e->n - 1);
    tg_buf_puts(&j->out, ", ");
    print_numbers(&j->out, "entropy", j->entropy + *at, e->n - 1);
    tg_buf_puts(&j->out, "}\n");
    *at += e->n - 1;
}

/* Scores what has been gathered and prints it. */
static tg_status flush(job *j, tg_error *err) {
    tg_batch b = {.tokens = j->tokens.data,
                  .offsets = j->offsets,
                  .act_row = j->act_row,
                  .act_token = j->act_token};
    for (int i = 0; i < j->n_entries; i++) {
        const entry *e = &j->entries[i];
        if (e->n <= 0) continue;
        j->offsets[b.n_seqs++] = e->first;
        for (int t = 1; t < e->n; t++) {
            j->act_row[b.n_actions] = e->first + t - 1;
            j->act_token[b.n_actions++] = j->tokens.data[e->first + t];
        }
    }
    b.n_tokens = (int)j->tokens.n;
    j->offsets[b.n_seqs] = b.n_tokens;
    tg_status st = TG_OK;
    if (b.n_actions)
        st = tg_pass_forward(j->pass, &b, (tg_pass_out){.logp = j->logp, .entropy = j->entropy},
                             err);
    if (st != TG_OK) return st;
    for (int i = 0, at = 0; i < j->n_entries; i++) print_entry(j, &j->entries[i], &at);
    j->n_entries = 0;
    j->tokens.n = 0;
    return tg_stdout_write(&j->out, err);
}

static tg_status read_entry(job *j, tg_jsonl *in, entry *e, tg_error *err) {
    int limit = j->model.model->arch.max_positions, vocab = j->model.model->arch.vocab_size;
    e->number = in->number;
    e->first = (int)j->tokens.n;
    e->n = -1;
    tg_error bad;
    tg_status st = TG_DATA;
    if (!in->value) {
        snprintf(e->why, sizeof e->why, "%s", in->why);
        return TG_OK;
    }
    if (json_object_get(in->value, "input_ids") || json_object_get(in->value, "input_text"))
        st = tg_fail(
            &bad, TG_DATA,
            "\"input_ids\" and \"input_text\" are for encoder-decoder models; this one is causal");
    else
        st = tg_line_ids(in->value, "ids", "text", j->model.tokenizer, vocab, &j->tokens, &bad);
    int n = (int)j->tokens.n - e->first;
    if (st == TG_OK && n > limit)
        st = tg_fail(&bad, TG_DATA, "%d tokens, but the model has only %d positions", n, limit);
    if (st == TG_NOMEM) return tg_fail_nomem(err, j->tokens.n * sizeof(int32_t));
    if (st == TG_OK) {
        e->n = n;
    } else {
        j->tokens.n = (size_t)e->first;
        in->n_bad++;
        snprintf(e->why, sizeof e->why, "%.*s", (int)sizeof e->why - 1, bad.msg);
    }
    return TG_OK;
}

static tg_status score_lines(job *j, tg_jsonl *in, tg_error *err) {
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(in)) {
        /* The next line may be as long as the model allows: flush before it could overflow the pass. */
        if (j->n_entries == MAX_LINES ||
            (int)j->tokens.n + j->model.model->arch.max_positions > j->max_tokens)
            st = flush(j, err);
        if (st == TG_OK) st = read_entry(j, in, &j->entries[j->n_entries], err);
        if (st == TG_OK) j->n_entries++;
    }
    if (st == TG_OK) st = flush(j, err);
    return st == TG_OK ? tg_jsonl_check(in, err) : st;
}

static tg_status job_open(job *j, const char *model_name, const char *backend, int threads,
                          tg_error *err) {
    tg_status st = tg_cli_model_open(&j->model, model_name, backend, threads, err);
    if (st != TG_OK) return st;
    j->max_tokens = TG_MAX(MIN_TOKENS, 2 * j->model.model->arch.max_positions);
    size_t n = (size_t)j->max_tokens;
    j->act_row = tg_alloc_array(n, sizeof *j->act_row);
    j->act_token = tg_alloc_array(n, sizeof *j->act_token);
    j->logp = tg_alloc_array(n, sizeof *j->logp);
    j->entropy = tg_alloc_array(n, sizeof *j->entropy);
    if (!j->act_row || !j->act_token || !j->logp || !j->entropy) return tg_fail_nomem(err, n * 16);
    tg_pass_caps caps = {.tokens = j->max_tokens, .seqs = MAX_LINES, .actions = j->max_tokens};
    return tg_pass_create(&j->pass, j->model.model, caps, false, err);
}

static void job_close(job *j) {
    tg_pass_destroy(&j->pass);
    tg_cli_model_close(&j->model);
    tg_ids_fini(&j->tokens);
    tg_free(j->act_row);
    tg_free(j->act_token);
    tg_free(j->logp);
    tg_free(j->entropy);
    tg_buf_fini(&j->out);
    tg_free(j);
}

int tg_cmd_logprob(int argc, char **argv) {
    const char *model = NULL, *backend = "cpu";
    int64_t threads = 0;
    bool jsonl = true;
    const tg_flag flags[] = {
        {"model", TG_FLAG_STR, &model, "NAME", "Model folder, or a name as in model_name."},
        {"jsonl", TG_FLAG_SWITCH, &jsonl, NULL, "One JSON object a line (always the case)."},
        {"backend", TG_FLAG_STR, &backend, "NAME", "Which backend computes: cpu (default) or ref."},
        {"threads", TG_FLAG_INT, &threads, "N", "Threads; 0 (default): one per CPU."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen logprob",
        .usage = "--model NAME --jsonl < LINES",
        .summary = "Log-probability of every token given those before it, and the entropy of the "
                   "distribution it came from.\n"
                   "Lines are {\"ids\": […]} or {\"text\": \"…\"}; results are {\"logprob\": […], "
                   "\"entropy\": […]}, null for the first token.",
        .flags = flags,
        .examples = "  echo '{\"text\": \"The box is red.\"}' | textgen logprob --model "
                    "textgen/tiny --jsonl\n",
        .no_overrides = true};
    tg_error err = {0};
    tg_args args;
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    bool help = args.help;
    tg_args_fini(&args);
    if (help) return 0;
    if (!model) {
        tg_fail(&err, TG_USAGE, "--model is missing: give a model folder or name");
        return tg_args_report(spec.name, &err);
    }
    job *j = tg_alloc(sizeof *j);
    if (!j) {
        tg_fail_nomem(&err, sizeof *j);
        return tg_args_report(spec.name, &err);
    }
    tg_jsonl in;
    tg_jsonl_open(&in, stdin);
    st = job_open(j, model, backend, (int)threads, &err);
    if (st == TG_OK) st = score_lines(j, &in, &err);
    tg_jsonl_close(&in);
    job_close(j);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    return in.n_bad ? tg_status_exit_code(TG_DATA) : 0;
}
