/* textgen tokenizer train: a byte-level BPE or a unigram tokenizer from text. */
#include "common/cli/tokenizer.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/locate.h"
#include "common/text/bpe_train.h"
#include "common/text/unigram_train.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

tg_status tg_cli_open_tokenizer(const char *name, tg_tokenizer **out, tg_error *err) {
    if (!name) return tg_fail(err, TG_USAGE, "--tokenizer DIR is missing");
    if (tg_path_exists(name)) return tg_tokenizer_open(out, name, err);
    char *folder = NULL;
    tg_status st = tg_model_locate(name, &folder, err);
    if (st == TG_OK) st = tg_tokenizer_open(out, folder, err);
    tg_free(folder);
    return st;
}

tg_status tg_cli_open_input(const tg_args *args, FILE **out, tg_error *err) {
    *out = args->n_positional ? fopen(args->positional[0], "rb") : stdin;
    return *out ? TG_OK : tg_fail_errno(err, TG_NOINPUT, "%s", args->positional[0]);
}

tg_status tg_cli_bad_lines(long bad, tg_error *err) {
    if (!bad) return TG_OK;
    return tg_fail(err, TG_DATA, "%ld line%s could not be used", bad, bad == 1 ? "" : "s");
}

/* Which trainer the texts go to: the other is NULL. */
typedef struct trainer {
    tg_bpe_trainer *bpe;
    tg_unigram_trainer *unigram;
} trainer;

static tg_status add_text(trainer *t, const char *text, size_t len, tg_error *err) {
    return t->bpe ? tg_bpe_trainer_add(t->bpe, text, len, err)
                  : tg_unigram_trainer_add(t->unigram, text, len, err);
}

/* {"text": "…"} a line; the line's number is for messages. */
static tg_status add_jsonl(trainer *t, const char *path, const char *text, size_t len,
                           tg_error *err) {
    tg_status st = TG_OK;
    size_t number = 1;
    for (size_t i = 0; i < len && st == TG_OK; number++) {
        const char *end = memchr(text + i, '\n', len - i);
        size_t n = end ? (size_t)(end - (text + i)) : len - i;
        json_t *line = json_loadb(text + i, n, 0, NULL);
        const json_t *value = json_object_get(line, "text");
        if (json_is_string(value))
            st = add_text(t, json_string_value(value), json_string_length(value), err);
        else if (n)
            st = tg_fail(err, TG_DATA, "%s:%zu: expected an object with a string \"text\"", path,
                         number);
        json_decref(line);
        i += n + 1;
    }
    return st;
}

static tg_status add_file(trainer *t, const char *path, tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_file_read(path, (size_t)8 << 30, &text, err);
    if (st == TG_OK && tg_str_ends(path, ".jsonl"))
        st = add_jsonl(t, path, text.data, text.len, err);
    else if (st == TG_OK)
        st = add_text(t, text.data, text.len, err);
    tg_buf_fini(&text);
    return st;
}

static tg_status train(const tg_bpe_train_options *options, bool unigram, const char *out,
                       const tg_args *args, tg_error *err) {
    trainer b = {0};
    tg_tokenizer *t = NULL;
    tg_status st =
        unigram ? tg_unigram_trainer_create(&b.unigram, err) : tg_bpe_trainer_create(&b.bpe, err);
    for (size_t i = 1; i < args->n_positional && st == TG_OK; i++)
        st = add_file(&b, args->positional[i], err);
    const tg_unigram_train_options u = {.vocab_size = options->vocab_size,
                                        .max_length = options->max_length};
    if (st == TG_OK)
        st = unigram ? tg_unigram_train(b.unigram, &u, &t, err)
                     : tg_bpe_train(b.bpe, options, &t, err);
    if (st == TG_OK) st = tg_tokenizer_save(t, out, err);
    if (st == TG_OK) fprintf(stderr, "%s: %d tokens\n", out, (int)tg_tokenizer_size(t));
    tg_tokenizer_destroy(&t);
    tg_bpe_trainer_destroy(&b.bpe);
    tg_unigram_trainer_destroy(&b.unigram);
    return st;
}

int tg_cmd_tokenizer(int argc, char **argv) {
    const char *out = NULL, *special = "<|endoftext|>", *kind = "bpe";
    tg_bpe_train_options options = {.vocab_size = 1024, .min_frequency = 2};
    const tg_flag flags[] = {
        {"out", TG_FLAG_STR, &out, "DIR", "Folder for tokenizer.json and the files beside it."},
        {"kind", TG_FLAG_STR, &kind, "KIND",
         "bpe: byte-level pairs, as GPT-2; unigram: pieces by probability, as T5."},
        {"vocab-size", TG_FLAG_INT, &options.vocab_size, "N",
         "Tokens in all; bpe: at least 256 and the special one, unigram: the characters and 3."},
        {"special", TG_FLAG_STR, &special, "TOKEN", "bpe: the token that begins and ends a text."},
        {"min-frequency", TG_FLAG_INT, &options.min_frequency, "N",
         "bpe: pairs that occur less often are not merged."},
        {"max-length", TG_FLAG_INT, &options.max_length, "N",
         "model_max_length of the tokenizer; 0: none."},
        {0}};
    const tg_args_spec spec = {
        "textgen tokenizer",
        "train --out DIR [--kind bpe|unigram] [--vocab-size N] FILE…",
        "Trains a tokenizer from text files, or from the \"text\" of .jsonl files.",
        flags,
        "  textgen tokenizer train --out tok --vocab-size 512 README.md\n"
        "  textgen tokenizer train --kind unigram --out tok --vocab-size 400 README.md\n",
        2,
        -1,
        true};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    options.special = &special;
    options.n_special = 1;
    if (args.help)
        st = TG_OK;
    else if (strcmp(args.positional[0], "train"))
        st = tg_fail(&err, TG_USAGE, "unknown action '%s' (there is: train)", args.positional[0]);
    else if (!out)
        st = tg_fail(&err, TG_USAGE, "--out DIR is missing");
    else if (strcmp(kind, "bpe") && strcmp(kind, "unigram"))
        st = tg_fail(&err, TG_USAGE, "--kind %s: expected bpe or unigram", kind);
    else
        st = train(&options, !strcmp(kind, "unigram"), out, &args, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
