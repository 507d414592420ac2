/* Prompts are read in chunks; all sequences of a chunk run through one generator, and results are printed in the order of the
 * lines. Sequence k of line i draws from stream number i * num_return_sequences + k, so a result does not depend on the chunking. */
#include "learner/cli/generate.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/jsonl.h"
#include "learner/cli/line_ids.h"
#include "learner/cli/open_model.h"
#include "learner/policy/generate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1024, SLOTS = 32 };

typedef struct line {
    long number;
    bool bad;
    char why[256];
} line;

typedef struct text_result {
    int32_t *tokens; /* owned; NULL until the sequence ended */
    float *logp;
    int n;
} text_result;

typedef struct job {
    tg_cli_model model;
    tg_gen_settings settings;
    tg_generator *generator;
    tg_arena arena;
    bool jsonl;
    uint64_t seed;
    int64_t per_line; /* num_return_sequences */
    int chunk;
    uint64_t first_line; /* of the chunk */
    line *lines;         /* (chunk) */
    int n_lines;
    text_result *results; /* (chunk * per_line) */
    tg_ids ids;
    tg_buf out;
} job;

static tg_status keep_result(void *arg, const tg_gen_result *r, tg_error *err) {
    job *j = arg;
    text_result *t = &j->results[r->id];
    t->n = r->n;
    t->tokens = tg_alloc_array((size_t)r->n, sizeof *t->tokens);
    t->logp = tg_alloc_array((size_t)r->n, sizeof *t->logp);
    if (!t->tokens || !t->logp) return tg_fail_nomem(err, (size_t)r->n * 8);
    memcpy(t->tokens, r->tokens, (size_t)r->n * sizeof *t->tokens);
    memcpy(t->logp, r->logp, (size_t)r->n * sizeof *t->logp);
    return TG_OK;
}

/* ---- output ------------------------------------------------------------------------------------ */

static tg_status decode(job *j, const text_result *t, tg_buf *text, tg_error *err) {
    if (!j->model.tokenizer) return TG_OK;
    return tg_tokenizer_decode(j->model.tokenizer, t->tokens, (size_t)t->n, TG_DECODE_SKIP_SPECIAL,
                               text, err);
}

static tg_status print_result(job *j, const text_result *t, tg_error *err) {
    tg_buf text = {0};
    tg_status st = decode(j, t, &text, err);
    if (st == TG_OK && !j->jsonl) {
        tg_buf_append(&j->out, text.data, text.len);
        tg_buf_putc(&j->out, '\n');
    } else if (st == TG_OK) {
        tg_buf_puts(&j->out, "{\"ids\": [");
        for (int i = 0; i < t->n; i++) tg_buf_printf(&j->out, i ? ", %d" : "%d", t->tokens[i]);
        tg_buf_puts(&j->out, "], \"text\": ");
        if (j->model.tokenizer)
            tg_json_string(&j->out, text.data ? text.data : "", text.len);
        else
            tg_buf_puts(&j->out, "null");
        tg_buf_puts(&j->out, ", \"logprob\": [");
        for (int i = 0; i < t->n; i++) {
            if (i) tg_buf_puts(&j->out, ", ");
            tg_json_number(&j->out, (double)t->logp[i]);
        }
        tg_buf_puts(&j->out, "]}");
    }
    tg_buf_fini(&text);
    return st;
}

static tg_status print_line(job *j, int i, tg_error *err) {
    const line *l = &j->lines[i];
    if (l->bad) {
        if (j->jsonl)
            tg_jsonl_put_error(&j->out, l->number, l->why);
        else
            fprintf(stderr, "textgen generate: line %ld: %s\n", l->number, l->why);
        return TG_OK;
    }
    bool list = j->jsonl && j->per_line > 1;
    tg_status st = TG_OK;
    if (list) tg_buf_putc(&j->out, '[');
    for (int64_t k = 0; k < j->per_line && st == TG_OK; k++) {
        if (list && k) tg_buf_puts(&j->out, ", ");
        st = print_result(j, &j->results[i * j->per_line + k], err);
    }
    if (list) tg_buf_putc(&j->out, ']');
    if (j->jsonl) tg_buf_putc(&j->out, '\n');
    return st;
}

static void forget_results(job *j) {
    for (int64_t i = 0; i < j->chunk * j->per_line; i++) {
        tg_free(j->results[i].tokens);
        tg_free(j->results[i].logp);
        j->results[i] = (text_result){0};
    }
}

/* Generates for the gathered lines and prints them. */
static tg_status flush(job *j, tg_error *err) {
    tg_status st = TG_OK;
    while (st == TG_OK && tg_generator_active(j->generator))
        st = tg_generator_advance(j->generator, keep_result, j, err);
    for (int i = 0; i < j->n_lines && st == TG_OK; i++) st = print_line(j, i, err);
    if (st == TG_OK) st = tg_stdout_write(&j->out, err);
    forget_results(j);
    j->first_line += (uint64_t)j->n_lines;
    j->n_lines = 0;
    return st;
}

/* ---- input ------------------------------------------------------------------------------------- */

/* Queues the line whose prompt is in j->ids; what is wrong with it becomes the line's result. */
static tg_status add_line(job *j, long number, tg_status st, const tg_error *why, long *n_bad) {
    line *l = &j->lines[j->n_lines];
    *l = (line){.number = number};
    tg_error bad = {0};
    if (st != TG_OK) bad = *why;
    int32_t bos = j->model.model->arch.bos_id;
    if (st == TG_OK && j->ids.n == 0 && bos >= 0 && !tg_ids_push(&j->ids, bos)) return TG_NOMEM;
    for (int64_t k = 0; k < j->per_line && st == TG_OK; k++) {
        uint64_t number_of =
            (j->first_line + (uint64_t)j->n_lines) * (uint64_t)j->per_line + (uint64_t)k;
        st = tg_generator_add(j->generator, (uint64_t)(j->n_lines * j->per_line + k), j->ids.data,
                              (int)j->ids.n, j->seed, TG_RNG_EVAL, number_of, &bad);
    }
    if (st == TG_NOMEM) return st;
    if (st != TG_OK) {
        l->bad = true;
        (*n_bad)++;
        snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, bad.msg);
    }
    j->n_lines++;
    return TG_OK;
}

static tg_status run_jsonl(job *j, long *n_bad, tg_error *err) {
    tg_jsonl in;
    tg_jsonl_open(&in, stdin);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        tg_error why = {.status = TG_DATA};
        tg_status line_status = TG_DATA;
        j->ids.n = 0;
        if (in.value)
            line_status = tg_line_ids(in.value, "ids", "prompt", j->model.tokenizer,
                                      j->model.model->arch.vocab_size, &j->ids, &why);
        else
            snprintf(why.msg, sizeof why.msg, "%s", in.why);
        st = add_line(j, in.number, line_status, &why, n_bad);
        if (st == TG_OK && j->n_lines == j->chunk) st = flush(j, err);
    }
    if (st == TG_NOMEM) st = tg_fail_nomem(err, j->ids.n * sizeof(int32_t));
    if (st == TG_OK) st = flush(j, err);
    if (st == TG_OK) st = tg_jsonl_check(&in, err);
    tg_jsonl_close(&in);
    return st;
}

static tg_status run_text(job *j, long *n_bad, tg_error *err) {
    if (!j->model.tokenizer)
        return tg_fail(err, TG_NOINPUT,
                       "the model folder has no tokenizer: use --jsonl and {\"ids\": […]}");
    char *text = NULL;
    size_t cap = 0;
    long number = 0;
    tg_status st = TG_OK;
    for (ssize_t len; st == TG_OK && (len = getline(&text, &cap, stdin)) >= 0;) {
        if (len && text[len - 1] == '\n') len--;
        j->ids.n = 0;
        tg_error why;
        tg_status line_status = tg_tokenizer_encode(j->model.tokenizer, text, (size_t)len,
                                                    TG_ENCODE_SPECIAL, &j->ids, &why);
        st = add_line(j, ++number, line_status, &why, n_bad);
        if (st == TG_OK && j->n_lines == j->chunk) st = flush(j, err);
    }
    free(text); /* getline's memory */
    if (st == TG_NOMEM) return tg_fail_nomem(err, j->ids.n * sizeof(int32_t));
    return st == TG_OK ? flush(j, err) : st;
}

/* ---- the command ------------------------------------------------------------------------------- */

static tg_status read_settings(job *j, const tg_args *args, tg_error *err) {
    tg_node *root;
    tg_status st = tg_tree_parse(&j->arena, "command line", "{}", 2, &root, err);
    for (size_t i = 0; st == TG_OK && i < args->n_overrides; i++)
        st = tg_tree_override(&j->arena, root, args->overrides[i], err);
    if (st == TG_OK)
        st = tg_gen_settings_read(&j->settings, root, "generation_kwargs", &j->arena, err);
    if (st == TG_OK) st = tg_gen_settings_supported(&j->settings, "generation_kwargs", err);
    return st;
}

static tg_status job_open(job *j, const char *model, const char *backend, int threads,
                          tg_error *err) {
    tg_status st = tg_cli_model_open(&j->model, model, backend, threads, err);
    if (st != TG_OK) return st;
    const tg_arch *arch = &j->model.model->arch;
    j->settings.eos_id = arch->eos_id;
    j->settings.pad_id = arch->pad_id;
    j->settings.lengths_count_prompt = true;
    j->per_line = j->settings.num_return_sequences;
    j->chunk = isatty(STDIN_FILENO) ? 1 : CHUNK;
    j->lines = tg_alloc_array((size_t)j->chunk, sizeof *j->lines);
    j->results = tg_alloc_array((size_t)j->chunk * (size_t)j->per_line, sizeof *j->results);
    if (!j->lines || !j->results)
        return tg_fail_nomem(err, (size_t)j->chunk * (size_t)j->per_line * 32);
    int slots = (int)TG_MIN((int64_t)SLOTS, j->chunk * j->per_line);
    return tg_generator_create(&j->generator, j->model.model, &j->settings, slots,
                               arch->max_positions, err);
}

static void job_close(job *j) {
    if (j->results) forget_results(j);
    tg_generator_destroy(&j->generator);
    tg_cli_model_close(&j->model);
    tg_ids_fini(&j->ids);
    tg_buf_fini(&j->out);
    tg_free(j->lines);
    tg_free(j->results);
    tg_arena_fini(&j->arena);
}

int tg_cmd_generate(int argc, char **argv) {
    const char *model = NULL, *backend = "cpu";
    int64_t threads = 0, seed = 0;
    job j = {0};
    const tg_flag flags[] = {
        {"model", TG_FLAG_STR, &model, "NAME", "Model folder, or a name as in model_name."},
        {"jsonl", TG_FLAG_SWITCH, &j.jsonl, NULL,
         "JSON lines in ({\"prompt\"} or {\"ids\"}) and out ({\"ids\", \"text\", \"logprob\"})."},
        {"seed", TG_FLAG_INT, &seed, "N", "Fixes the draws (default 0)."},
        {"backend", TG_FLAG_STR, &backend, "NAME", "Which backend computes: cpu (default) or ref."},
        {"threads", TG_FLAG_INT, &threads, "N", "Threads; 0 (default): one per CPU."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen generate",
        .usage = "--model NAME [--jsonl] [key=value …] < PROMPTS",
        .summary = "Continues prompts, one a line. Keys are those of generation_kwargs (do_sample, "
                   "top_k, temperature, max_new_tokens …).",
        .flags = flags,
        .examples = "  echo 'The box' | textgen generate --model textgen/tiny do_sample=true "
                    "max_new_tokens=20\n"
                    "  textgen generate --model textgen/tiny --jsonl num_return_sequences=4 "
                    "do_sample=true < prompts.jsonl\n"};
    tg_error err = {0};
    tg_args args;
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    bool help = args.help;
    long n_bad = 0;
    if (!help) {
        j.seed = (uint64_t)seed;
        st = model ? read_settings(&j, &args, &err)
                   : tg_fail(&err, TG_USAGE, "--model is missing: give a model folder or name");
        if (st == TG_OK) st = job_open(&j, model, backend, (int)threads, &err);
        if (st == TG_OK) st = j.jsonl ? run_jsonl(&j, &n_bad, &err) : run_text(&j, &n_bad, &err);
    }
    tg_args_fini(&args);
    job_close(&j);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    return n_bad ? tg_status_exit_code(TG_DATA) : 0;
}
