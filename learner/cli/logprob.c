/* Lines are gathered into packed batches and scored in one pass each; results are printed in the order of the lines. A seq2seq model's
 * decoder reads its start token and then the ids, so that the first has a log-prob too. */
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

enum { MAX_LINES = 256, ENOUGH_TOKENS = 4096, ROOM_STEP = 256 };

typedef struct entry {
    long number;
    int first, n; /* tokens of the batch; n < 0: the line was bad, why says how */
    int32_t last; /* of two or more, the one that is not read: it is only asked for */
    int src_end;  /* seq2seq: where its source ends */
    char why[256];
} entry;

typedef struct job {
    tg_cli_model model;
    tg_pass *pass; /* as large as the largest batch so far */
    tg_pass_caps caps;
    bool seq2seq;
    entry entries[MAX_LINES];
    int n_entries;
    tg_ids tokens, source; /* seq2seq: a line's tokens are the start token and its ids */
    int32_t offsets[MAX_LINES + 1], src_offsets[MAX_LINES + 1];
    int32_t *act_row, *act_token; /* (n_room) */
    float *logp, *entropy;
    size_t n_room; /* tokens of the largest batch so far */
    tg_buf out;
} job;

/* first: what stands before the values. */
static void print_numbers(tg_buf *out, const char *key, const char *first, const float *values,
                          int n) {
    tg_buf_printf(out, "\"%s\": [%s", key, first);
    for (int i = 0; i < n; i++) {
        if (i || *first) tg_buf_puts(out, ", ");
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
    /* nothing comes before a causal model's first token */
    const char *first = j->seq2seq ? "" : "null";
    tg_buf_putc(&j->out, '{');
    print_numbers(&j->out, "logprob", first, j->logp + *at, e->n - 1);
    tg_buf_puts(&j->out, ", ");
    print_numbers(&j->out, "entropy", first, j->entropy + *at, e->n - 1);
    tg_buf_puts(&j->out, "}\n");
    *at += e->n - 1;
}

static int rounded_up(int n) {
    return (n + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
}

static tg_status make_room(job *j, const tg_batch *b, tg_error *err) {
    tg_pass_caps *c = &j->caps;
    if (j->pass && b->n_tokens <= c->tokens && b->n_src <= c->src) return TG_OK;
    tg_pass_destroy(&j->pass);
    c->tokens = c->actions = TG_MAX(c->tokens, rounded_up(b->n_tokens));
    c->src = TG_MAX(c->src, rounded_up(b->n_src));
    c->seqs = MAX_LINES;
    return tg_pass_create(&j->pass, j->model.model, *c, false, err);
}

static void free_lists(job *j) {
    tg_free(j->act_row);
    tg_free(j->act_token);
    tg_free(j->logp);
    tg_free(j->entropy);
}

static tg_status make_lists(job *j, size_t n, tg_error *err) {
    if (n <= j->n_room) return TG_OK;
    free_lists(j);
    j->n_room = n;
    j->act_row = tg_alloc_array(n, sizeof *j->act_row);
    j->act_token = tg_alloc_array(n, sizeof *j->act_token);
    j->logp = tg_alloc_array(n, sizeof *j->logp);
    j->entropy = tg_alloc_array(n, sizeof *j->entropy);
    if (!j->act_row || !j->act_token || !j->logp || !j->entropy) return tg_fail_nomem(err, n * 16);
    return TG_OK;
}

/* Scores what has been gathered and prints it. */
static tg_status flush(job *j, tg_error *err) {
    tg_status st = make_lists(j, j->tokens.n, err);
    if (st != TG_OK) return st;
    tg_batch b = {.tokens = j->tokens.data,
                  .offsets = j->offsets,
                  .act_row = j->act_row,
                  .act_token = j->act_token};
    for (int i = 0; i < j->n_entries; i++) {
        const entry *e = &j->entries[i];
        if (e->n <= 0) continue;
        j->src_offsets[b.n_seqs] = b.n_src;
        j->offsets[b.n_seqs++] = e->first;
        b.n_src = e->src_end;
        for (int t = 1; t < e->n; t++) {
            j->act_row[b.n_actions] = e->first + t - 1;
            j->act_token[b.n_actions++] = t + 1 < e->n ? j->tokens.data[e->first + t] : e->last;
        }
    }
    b.n_tokens = (int)j->tokens.n;
    j->offsets[b.n_seqs] = b.n_tokens;
    j->src_offsets[b.n_seqs] = b.n_src;
    b.src_tokens = j->source.data;
    b.src_offsets = j->src_offsets;
    st = b.n_actions ? make_room(j, &b, err) : TG_OK;
    if (st == TG_OK && b.n_actions)
        st = tg_pass_forward(j->pass, &b, (tg_pass_out){.logp = j->logp, .entropy = j->entropy},
                             err);
    if (st != TG_OK) return st;
    for (int i = 0, at = 0; i < j->n_entries; i++) print_entry(j, &j->entries[i], &at);
    j->n_entries = 0;
    j->tokens.n = j->source.n = 0;
    return tg_stdout_write(&j->out, err);
}

static tg_status read_ids(job *j, const json_t *line, const entry *e, tg_error *err) {
    const tg_arch *arch = &j->model.model->arch;
    if (!j->seq2seq && (json_object_get(line, "input_ids") || json_object_get(line, "input_text")))
        return tg_fail(
            err, TG_DATA,
            "\"input_ids\" and \"input_text\" are for encoder-decoder models; this one is causal");
    const tg_tokenizer *answers = j->model.tokenizer;
    if (answers && j->seq2seq) answers = tg_tokenizer_target(answers);
    tg_status st = TG_OK;
    const size_t source = j->source.n;
    if (j->seq2seq) {
        const tg_arch encoder = tg_arch_encoder(arch);
        st = tg_line_ids(line, "input_ids", "input_text", j->model.tokenizer, encoder.vocab_size,
                         &j->source, err);
        if (st == TG_OK && j->source.n == source)
            st = tg_fail(err, TG_DATA, "\"input_ids\": the source is empty");
        if (st == TG_OK && !tg_ids_push(&j->tokens, arch->start_id)) st = tg_fail_nomem(err, 4);
    }
    if (st == TG_OK)
        st = tg_line_ids(line, "ids", "text", answers, arch->vocab_size, &j->tokens, err);
    if (st != TG_OK) return st;
    const size_t n = j->tokens.n - (size_t)e->first, n_source = j->source.n - source;
    const size_t read = TG_MAX(n > 1 ? n - 1 : n, n_source); /* the last token is only asked for */
    if (read > (size_t)tg_arch_longest(arch))
        return tg_fail(err, TG_DATA, "%zu tokens, but the model has only %d positions",
                       TG_MAX(n - j->seq2seq, n_source), tg_arch_longest(arch));
    tg_cli_model_check_length(&j->model, "logprob", (int64_t)read);
    return TG_OK;
}

static tg_status read_entry(job *j, tg_jsonl *in, entry *e, tg_error *err) {
    const size_t source = j->source.n;
    e->number = in->number;
    e->first = (int)j->tokens.n;
    e->n = -1;
    tg_error bad;
    if (!in->value) {
        snprintf(e->why, sizeof e->why, "%s", in->why);
        return TG_OK;
    }
    tg_status st = read_ids(j, in->value, e, &bad);
    if (st == TG_NOMEM) return tg_fail_nomem(err, j->tokens.n * sizeof(int32_t));
    if (st == TG_OK) {
        e->n = (int)j->tokens.n - e->first;
        if (e->n > 1) e->last = j->tokens.data[--j->tokens.n];
        e->src_end = (int)j->source.n;
    } else {
        j->tokens.n = (size_t)e->first;
        j->source.n = source;
        in->n_bad++;
        snprintf(e->why, sizeof e->why, "%.*s", (int)sizeof e->why - 1, bad.msg);
    }
    return TG_OK;
}

static tg_status score_lines(job *j, tg_jsonl *in, tg_error *err) {
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(in)) {
        if (j->n_entries == MAX_LINES || TG_MAX(j->tokens.n, j->source.n) >= ENOUGH_TOKENS)
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
    const tg_arch *arch = &j->model.model->arch;
    j->seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    if (j->seq2seq && arch->start_id < 0)
        return tg_fail(err, TG_DATA,
                       "%s: config.json: decoder_start_token_id is missing: what does an answer "
                       "begin with?",
                       model_name);
    return TG_OK;
}

static void job_close(job *j) {
    tg_pass_destroy(&j->pass);
    tg_cli_model_close(&j->model);
    tg_ids_fini(&j->tokens);
    tg_ids_fini(&j->source);
    free_lists(j);
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
                   "\"entropy\": […]}, null for the first token.\n"
                   "Encoder-decoder models: lines also have the source, \"input_ids\" or "
                   "\"input_text\", and the first token has numbers too.",
        .flags = flags,
        .examples = "  echo '{\"text\": \"The box is red.\"}' | textgen logprob --model "
                    "textgen/tiny --jsonl\n"
                    "  echo '{\"input_text\": \"translate: yes\", \"text\": \"ja\"}' | textgen "
                    "logprob --model t5-small --jsonl\n",
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
    st = tg_cli_threads(threads, &err);
    if (st == TG_OK) st = job_open(j, model, backend, (int)threads, &err);
    if (st == TG_OK) st = score_lines(j, &in, &err);
    tg_jsonl_close(&in);
    job_close(j);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    return tg_lines_report(spec.name, in.n_bad, in.number);
}
