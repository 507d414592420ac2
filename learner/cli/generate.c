/* Prompts are read in chunks; results are printed in the order of the lines. */
#include "learner/cli/generate.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/config/args.h"
#include "common/config/jsonl.h"
#include "common/config/locate.h"
#include "learner/cli/gen_chunk.h"
#include "learner/cli/gen_kwargs.h"
#include "learner/cli/gen_print.h"
#include "learner/cli/line_ids.h"
#include "learner/cli/open_model.h"
#include "common/text/stop_strings.h"

#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 1024 };

typedef struct job {
    tg_cli_model model;
    tg_gen_settings settings;
    tg_stop_strings *stops;
    tg_arena arena;
    bool jsonl;
    uint64_t seed;
    tg_gen_chunk chunk;
    tg_buf out;
} job;

/* Generates for the gathered lines and prints them. */
static tg_status flush(job *j, tg_error *err) {
    tg_gen_chunk *c = &j->chunk;
    tg_status st = tg_gen_chunk_run(c, err);
    for (int i = 0; i < c->n && st == TG_OK; i++)
        st = tg_gen_print_line(c, i, j->jsonl, &j->out, err);
    if (st == TG_OK) st = tg_stdout_write(&j->out, err);
    tg_gen_chunk_clear(c);
    return st;
}

/* ---- input ------------------------------------------------------------------------------------- */

static tg_status run_jsonl(job *j, tg_error *err) {
    tg_gen_chunk *c = &j->chunk;
    tg_jsonl in;
    tg_jsonl_open(&in, stdin);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        tg_error why = {.status = TG_DATA};
        tg_status line_status = TG_DATA;
        size_t first = c->ids.n;
        if (in.value)
            line_status = tg_line_ids(in.value, "ids", "prompt", j->model.tokenizer,
                                      tg_cli_model_vocab(&j->model), &c->ids, &why);
        else
            snprintf(why.msg, sizeof why.msg, "%s", in.why);
        st = tg_gen_chunk_add(c, in.number, first, line_status, &why);
        if (st == TG_OK && c->n == c->cap) st = flush(j, err);
    }
    if (st == TG_NOMEM) st = tg_fail_nomem(err, c->ids.n * sizeof(int32_t));
    if (st == TG_OK) st = flush(j, err);
    if (st == TG_OK) st = tg_jsonl_check(&in, err);
    tg_jsonl_close(&in);
    return st;
}

static tg_status run_text(job *j, tg_error *err) {
    if (!j->model.tokenizer)
        return tg_fail(err, TG_NOINPUT,
                       "the model folder has no tokenizer: use --jsonl and {\"ids\": […]}");
    tg_gen_chunk *c = &j->chunk;
    char *text = NULL;
    size_t cap = 0;
    long number = 0;
    tg_status st = TG_OK;
    for (ssize_t len; st == TG_OK && (len = getline(&text, &cap, stdin)) >= 0;) {
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r')) len--;
        size_t first = c->ids.n;
        tg_error why;
        tg_status line_status = tg_line_text(text, (size_t)len, j->model.tokenizer,
                                             tg_cli_model_vocab(&j->model), &c->ids, &why);
        st = tg_gen_chunk_add(c, ++number, first, line_status, &why);
        if (st == TG_OK && c->n == c->cap) st = flush(j, err);
    }
    free(text); /* getline's memory */
    if (st == TG_NOMEM) return tg_fail_nomem(err, c->ids.n * sizeof(int32_t));
    if (st == TG_OK) st = flush(j, err);
    return st == TG_OK ? tg_lines_check(stdin, number, err) : st;
}

/* ---- the command ------------------------------------------------------------------------------- */

/* A folder without generation_config.json may leave the end token, padding, and what answers begin with, to its family. */
static void settle_tokens(job *j, const char *folder) {
    const tg_arch *arch = &j->model.model->arch;
    char *path = tg_path_join(folder, "generation_config.json");
    const bool alone = path && tg_path_exists(path);
    tg_free(path);
    if (!j->settings.eos_token_id && !alone) tg_gen_set_eos(&j->settings, arch->eos_id);
    if (j->settings.decoder_start_id < 0 && alone)
        j->settings.decoder_start_id = j->settings.bos_id;
    if (j->settings.pad_id < 0 && !alone) j->settings.pad_id = arch->pad_id;
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
    j->settings.weights = TG_WEIGHT_PACKED;
    return tg_gen_chunk_init(&j->chunk, &j->model, &j->settings, j->seed,
                             isatty(STDIN_FILENO) ? 1 : CHUNK, err);
}

static void job_close(job *j) {
    tg_gen_chunk_fini(&j->chunk);
    tg_stop_strings_destroy(&j->stops);
    tg_cli_model_close(&j->model);
    tg_buf_fini(&j->out);
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
    const long n_bad = j.chunk.n_bad, n_lines = (long)j.chunk.before;
    const bool apart = j.jsonl; /* lines of text said on stderr what is wrong */
    job_close(&j);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (apart) return tg_lines_report(spec.name, n_bad, n_lines);
    return n_bad ? tg_status_exit_code(TG_DATA) : 0;
}
