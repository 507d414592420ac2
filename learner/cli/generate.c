/* Prompts are read in chunks; all of a chunk run through one generator, as large as they need, and results are printed in the order of the
 * lines. Result k of line i draws from stream number i * num_return_sequences + k, so it does not depend on the chunking. */
#include "learner/cli/generate.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/jsonl.h"
#include "common/config/locate.h"
#include "learner/cli/gen_kwargs.h"
#include "learner/cli/line_ids.h"
#include "learner/cli/open_model.h"
#include "learner/policy/generate.h"
#include "common/text/stop_strings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1024, CHUNK_RESULTS = 1 << 20, SLOTS = 32, LEN_STEP = 64 };

typedef struct line {
    long number;
    size_t first, n; /* its prompt in job.ids */
    bool bad;
    char why[256];
} line;

typedef struct text_result {
    int32_t *tokens; /* owned; NULL until the sequence ended */
    float *logp, *sample_logp;
    int n;
    double score;
    tg_gen_end end;
} text_result;

typedef struct job {
    tg_cli_model model;
    tg_gen_settings settings;
    tg_stop_strings *stops;
    tg_generator *generator;
    tg_decoder_caps caps; /* of the generator */
    tg_arena arena;
    bool jsonl;
    uint64_t seed;
    int64_t per_line; /* num_return_sequences */
    int chunk;
    uint64_t first_line; /* of the chunk */
    line *lines;         /* (chunk) */
    int n_lines;
    long n_bad;
    text_result *results; /* (chunk * per_line) */
    tg_ids ids;           /* prompts of the chunk, one behind the other */
    tg_buf out;
} job;

static tg_status keep_result(void *arg, const tg_gen_result *r, tg_error *err) {
    job *j = arg;
    text_result *t = &j->results[(int64_t)r->id * j->per_line + r->index];
    size_t n = (size_t)r->n;
    *t = (text_result){.n = r->n, .score = r->score, .end = r->end};
    t->tokens = tg_alloc_array(n + 1, sizeof *t->tokens);
    t->logp = tg_alloc_array(n + 1, sizeof *t->logp);
    t->sample_logp = tg_alloc_array(n + 1, sizeof *t->sample_logp);
    if (!t->tokens || !t->logp || !t->sample_logp) return tg_fail_nomem(err, n * 12);
    if (!n) return TG_OK;
    memcpy(t->tokens, r->tokens, n * sizeof *t->tokens);
    memcpy(t->logp, r->logp, n * sizeof *t->logp);
    memcpy(t->sample_logp, r->sample_logp, n * sizeof *t->sample_logp);
    return TG_OK;
}

/* ---- output ------------------------------------------------------------------------------------ */

static tg_status decode(job *j, const text_result *t, tg_buf *text, tg_error *err) {
    if (!j->model.tokenizer) return TG_OK;
    return tg_tokenizer_decode(j->model.tokenizer, t->tokens, (size_t)t->n, TG_DECODE_SKIP_SPECIAL,
                               text, err);
}

static void put_numbers(tg_buf *out, const char *key, const float *values, int n) {
    tg_buf_printf(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_json_number(out, (double)values[i]);
    }
    tg_buf_putc(out, ']');
}

static void put_json(job *j, const text_result *t, const tg_buf *text) {
    static const char *const ends[] = {"none", "eos", "stop", "length"};
    tg_buf *out = &j->out;
    tg_buf_puts(out, "{\"ids\": [");
    for (int i = 0; i < t->n; i++) tg_buf_printf(out, i ? ", %d" : "%d", t->tokens[i]);
    tg_buf_puts(out, "], \"text\": ");
    if (j->model.tokenizer)
        tg_json_string(out, text->data ? text->data : "", text->len);
    else
        tg_buf_puts(out, "null");
    put_numbers(out, "logprob", t->logp, t->n);
    if (j->settings.do_sample && j->settings.num_beams == 1)
        put_numbers(out, "sample_logprob", t->sample_logp, t->n);
    if (j->settings.num_beams > 1) {
        put_numbers(out, "step_score", t->sample_logp, t->n);
        tg_buf_puts(out, ", \"score\": ");
        tg_json_number(out, t->score);
    }
    tg_buf_printf(out, ", \"end\": \"%s\"}", ends[t->end]);
}

static tg_status print_result(job *j, const text_result *t, tg_error *err) {
    tg_buf text = {0};
    tg_status st = decode(j, t, &text, err);
    if (st == TG_OK && !j->jsonl) {
        tg_buf_append(&j->out, text.data, text.len);
        tg_buf_putc(&j->out, '\n');
    } else if (st == TG_OK) {
        put_json(j, t, &text);
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
        tg_free(j->results[i].sample_logp);
        j->results[i] = (text_result){0};
    }
}

/* ---- one chunk --------------------------------------------------------------------------------- */

static void mark_bad(job *j, line *l, const tg_error *why) {
    l->bad = true;
    j->n_bad++;
    snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, why->msg);
}

/* Room for the chunk's prompts and results, or as much as the model has positions. */
static tg_decoder_caps caps_needed(job *j) {
    const tg_arch *arch = &j->model.model->arch;
    bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    const int64_t limit = tg_arch_longest(arch), step = LEN_STEP;
    int64_t len = 1, src = 1, wanted = 0;
    for (int i = 0; i < j->n_lines; i++) {
        const line *l = &j->lines[i];
        if (l->bad) continue;
        int n_prompt = seq2seq ? 1 : (int)l->n;
        int64_t need = n_prompt + tg_gen_max_new(&j->settings, n_prompt) - 1;
        if (need <= limit) len = TG_MAX(len, need);
        if ((int64_t)l->n <= limit) src = TG_MAX(src, (int64_t)l->n);
        wanted += j->per_line * j->settings.num_beams;
    }
    tg_cli_model_check_length(&j->model, "generate", len);
    return (tg_decoder_caps){.slots = (int)TG_MAX(TG_MIN(wanted, (int64_t)SLOTS), 1),
                             .len = (int)TG_MIN((len + step - 1) / step * step, limit),
                             .src =
                                 seq2seq ? (int)TG_MIN((src + step - 1) / step * step, limit) : 0};
}

static tg_status make_room(job *j, tg_error *err) {
    tg_decoder_caps need = caps_needed(j), *have = &j->caps;
    if (j->generator && need.slots <= have->slots && need.len <= have->len && need.src <= have->src)
        return TG_OK;
    tg_generator_destroy(&j->generator);
    *have = (tg_decoder_caps){.slots = TG_MAX(need.slots, have->slots),
                              .len = TG_MAX(need.len, have->len),
                              .src = TG_MAX(need.src, have->src)};
    j->settings.weights = TG_WEIGHT_PACKED;
    return tg_generator_create(&j->generator, j->model.model, &j->settings, *have, err);
}

/* What is wrong with a line becomes its result. */
static tg_status add_lines(job *j, int first, int end, tg_error *err) {
    for (int i = first; i < end; i++) {
        line *l = &j->lines[i];
        if (l->bad) continue;
        tg_error why = {0};
        tg_status st =
            tg_generator_add(j->generator, (uint64_t)i, j->ids.data + l->first, (int)l->n, j->seed,
                             TG_RNG_EVAL, j->first_line + (uint64_t)i, &why);
        if (st == TG_NOMEM) return tg_fail_nomem(err, l->n * sizeof(int32_t));
        if (st != TG_OK) mark_bad(j, l, &why);
    }
    return TG_OK;
}

static tg_status run_lines(job *j, int first, int end, tg_error *err) {
    tg_status st = add_lines(j, first, end, err);
    while (st == TG_OK && tg_generator_active(j->generator))
        st = tg_generator_advance(j->generator, keep_result, j, err);
    if (st != TG_OK) tg_generator_destroy(&j->generator); /* it cannot go on */
    return st;
}

/* After a sequence that found no next token, which ends all that run beside it: only its own line has no result then. */
static tg_status run_one_by_one(job *j, tg_error *err) {
    forget_results(j);
    for (int i = 0; i < j->n_lines; i++) {
        tg_status st = make_room(j, err);
        if (st != TG_OK) return st;
        st = run_lines(j, i, i + 1, err);
        if (st == TG_DATA)
            mark_bad(j, &j->lines[i], err);
        else if (st != TG_OK)
            return st;
    }
    return TG_OK;
}

/* Generates for the gathered lines and prints them. */
static tg_status flush(job *j, tg_error *err) {
    tg_status st = j->n_lines ? make_room(j, err) : TG_OK;
    if (st == TG_OK && j->n_lines) {
        st = run_lines(j, 0, j->n_lines, err);
        if (st == TG_DATA) st = run_one_by_one(j, err);
    }
    for (int i = 0; i < j->n_lines && st == TG_OK; i++) st = print_line(j, i, err);
    if (st == TG_OK) st = tg_stdout_write(&j->out, err);
    forget_results(j);
    j->first_line += (uint64_t)j->n_lines;
    j->n_lines = 0;
    j->ids.n = 0;
    return st;
}

/* ---- input ------------------------------------------------------------------------------------- */

/* The line whose prompt was appended to j->ids, from `first` on; `st` and `why` say how that went. */
static tg_status add_line(job *j, long number, size_t first, tg_status st, const tg_error *why) {
    line *l = &j->lines[j->n_lines++];
    *l = (line){.number = number, .first = first};
    int32_t bos = j->settings.bos_id >= 0 ? j->settings.bos_id : j->model.model->arch.bos_id;
    if (st == TG_NOMEM) return st;
    if (st != TG_OK) {
        mark_bad(j, l, why);
        j->ids.n = first;
    } else if (j->ids.n == first && bos >= 0 && !tg_ids_push(&j->ids, bos)) {
        return TG_NOMEM;
    }
    l->n = j->ids.n - first;
    return TG_OK;
}

/* A source may be in another vocabulary than the answer. */
static int prompt_vocab(const job *j) {
    const tg_arch *arch = &j->model.model->arch;
    return arch->kind == TG_KIND_SEQ2SEQ ? tg_arch_encoder(arch).vocab_size : arch->vocab_size;
}

static tg_status run_jsonl(job *j, tg_error *err) {
    tg_jsonl in;
    tg_jsonl_open(&in, stdin);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        tg_error why = {.status = TG_DATA};
        tg_status line_status = TG_DATA;
        size_t first = j->ids.n;
        if (in.value)
            line_status = tg_line_ids(in.value, "ids", "prompt", j->model.tokenizer,
                                      prompt_vocab(j), &j->ids, &why);
        else
            snprintf(why.msg, sizeof why.msg, "%s", in.why);
        st = add_line(j, in.number, first, line_status, &why);
        if (st == TG_OK && j->n_lines == j->chunk) st = flush(j, err);
    }
    if (st == TG_NOMEM) st = tg_fail_nomem(err, j->ids.n * sizeof(int32_t));
    if (st == TG_OK) st = flush(j, err);
    if (st == TG_OK) st = tg_jsonl_check(&in, err);
    tg_jsonl_close(&in);
    return st;
}

static tg_status run_text(job *j, tg_error *err) {
    if (!j->model.tokenizer)
        return tg_fail(err, TG_NOINPUT,
                       "the model folder has no tokenizer: use --jsonl and {\"ids\": […]}");
    char *text = NULL;
    size_t cap = 0;
    long number = 0;
    tg_status st = TG_OK;
    for (ssize_t len; st == TG_OK && (len = getline(&text, &cap, stdin)) >= 0;) {
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r')) len--;
        size_t first = j->ids.n;
        tg_error why;
        tg_status line_status =
            tg_line_text(text, (size_t)len, j->model.tokenizer, prompt_vocab(j), &j->ids, &why);
        st = add_line(j, ++number, first, line_status, &why);
        if (st == TG_OK && j->n_lines == j->chunk) st = flush(j, err);
    }
    free(text); /* getline's memory */
    if (st == TG_NOMEM) return tg_fail_nomem(err, j->ids.n * sizeof(int32_t));
    if (st == TG_OK) st = flush(j, err);
    return st == TG_OK ? tg_lines_check(stdin, number, err) : st;
}

/* ---- the command ------------------------------------------------------------------------------- */

/* A folder without generation_config.json may leave the end token to its family. */
static void settle_tokens(job *j, const char *folder) {
    const tg_arch *arch = &j->model.model->arch;
    char *path = tg_path_join(folder, "generation_config.json");
    if (!j->settings.eos_token_id && path && !tg_path_exists(path))
        tg_gen_set_eos(&j->settings, arch->eos_id);
    tg_free(path);
    if (j->settings.pad_id < 0) j->settings.pad_id = arch->pad_id;
    if (j->settings.pad_id < 0 && j->settings.n_eos) j->settings.pad_id = j->settings.eos_ids[0];
    j->settings.lengths_count_prompt = true;
}

static tg_status job_open(job *j, const tg_gen_kwargs *kwargs, const tg_args *args,
                          const char *model, const char *backend, int threads, tg_error *err) {
    char *folder = NULL;
    tg_status st = tg_model_locate(model, &folder, err);
    if (st == TG_OK) st = tg_gen_kwargs_read(kwargs, args, folder, &j->arena, &j->settings, err);
    if (st == TG_OK) st = tg_cli_model_open(&j->model, model, backend, threads, err);
    if (st == TG_OK) settle_tokens(j, folder);
    tg_free(folder);
    if (st == TG_OK && !tg_node_is_null(j->settings.stop_strings) && j->model.tokenizer)
        st = tg_stop_strings_create(&j->stops, j->settings.stop_strings, "generation_kwargs",
                                    j->model.tokenizer, j->model.model->arch.vocab_size, err);
    if (st != TG_OK) return st;
    j->settings.stop_text = j->stops;
    j->per_line = j->settings.num_return_sequences;
    j->chunk = (int)TG_MAX(TG_MIN(CHUNK_RESULTS / j->per_line, (int64_t)CHUNK), (int64_t)1);
    if (isatty(STDIN_FILENO)) j->chunk = 1;
    j->lines = tg_alloc_array((size_t)j->chunk, sizeof *j->lines);
    j->results = tg_alloc_array((size_t)j->chunk * (size_t)j->per_line, sizeof *j->results);
    if (!j->lines || !j->results)
        return tg_fail_nomem(err, (size_t)j->chunk * (size_t)j->per_line * sizeof *j->results);
    return TG_OK;
}

static void job_close(job *j) {
    if (j->results) forget_results(j);
    tg_generator_destroy(&j->generator);
    tg_stop_strings_destroy(&j->stops);
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
    tg_gen_kwargs kwargs = {0};
    tg_flag flags[TG_GEN_KWARGS_MAX + 8] = {
        {"model", TG_FLAG_STR, &model, "NAME", "Model folder, or a name as in model_name."},
        {"jsonl", TG_FLAG_SWITCH, &j.jsonl, NULL,
         "JSON lines in ({\"prompt\"} or {\"ids\"}) and out ({\"ids\", \"text\", \"logprob\" …})."},
        {"seed", TG_FLAG_INT, &seed, "N", "Fixes the draws (default 0)."},
        {"backend", TG_FLAG_STR, &backend, "NAME", "Which backend computes: cpu (default) or ref."},
        {"threads", TG_FLAG_INT, &threads, "N", "Threads; 0 (default): one per CPU."},
    };
    tg_gen_kwargs_flags(&kwargs, flags, 5);
    const tg_args_spec spec = {
        .name = "textgen generate",
        .usage = "--model NAME [--jsonl] [options] [key=value …] < PROMPTS",
        .summary =
            "Continues prompts, one a line; of an encoder-decoder model they are the sources.\n"
            "How is said by the keys of generation_kwargs, as options (--num-beams 5) or as "
            "key=value; what is not\ngiven comes from the model's generation_config.json, or is "
            "transformers 4.18's default.",
        .flags = flags,
        .examples = "  echo 'The box' | textgen generate --model textgen/tiny --max-new-tokens 20\n"
                    "  textgen generate --model textgen/tiny --jsonl num_return_sequences=4 "
                    "do_sample=true < prompts.jsonl\n"
                    "  textgen generate --model textgen/tiny --kwargs '{num_beams: 5, "
                    "no_repeat_ngram_size: 3}' < prompts.txt\n"};
    tg_error err = {0};
    tg_args args;
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        j.seed = (uint64_t)seed;
        st = model ? tg_cli_threads(threads, &err)
                   : tg_fail(&err, TG_USAGE, "--model is missing: give a model folder or name");
        if (st == TG_OK) st = job_open(&j, &kwargs, &args, model, backend, (int)threads, &err);
        if (st == TG_OK) st = j.jsonl ? run_jsonl(&j, &err) : run_text(&j, &err);
    }
    tg_args_fini(&args);
    const long n_bad = j.n_bad, n_lines = (long)j.first_line;
    const bool apart = j.jsonl; /* lines of text said on stderr what is wrong */
    job_close(&j);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (apart) return tg_lines_report(spec.name, n_bad, n_lines);
    return n_bad ? tg_status_exit_code(TG_DATA) : 0;
}
