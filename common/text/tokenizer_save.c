/* Writing a tokenizer: what Hugging Face needs to load it again with the same ids. */
#include "common/text/tokenizer_impl.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/bpe.h"
#include "common/text/wordpiece.h"

#include <string.h>

void tg_tokenizer_write_json(const tg_tokenizer *t, tg_buf *out) {
    tg_buf_puts(out,
                "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":");
    tg_added_write_json(&t->added, out);
    tg_buf_printf(
        out,
        ",\n\"normalizer\":%s,\n\"pre_tokenizer\":%s,\n\"post_processor\":%s,\n\"decoder\":%s,\n",
        t->normalizer.json, t->pretok.json, t->postproc.json, t->decoder.json);
    tg_buf_puts(out, "\"model\":");
    t->model->ops->write_json(t->model, out);
    tg_buf_puts(out, "}\n");
}

static void put_role(tg_buf *out, const char *key, const char *token, const char **comma) {
    if (!token) return;
    tg_buf_printf(out, "%s\n  \"%s\": ", *comma, key);
    tg_part_write_str(out, token, strlen(token));
    *comma = ",";
}

static void put_roles(const tg_tokenizer *t, tg_buf *out, const char **comma) {
    put_role(out, "bos_token", tg_tokenizer_token(t, t->bos), comma);
    put_role(out, "eos_token", tg_tokenizer_token(t, t->eos), comma);
    put_role(out, "pad_token", tg_tokenizer_token(t, t->pad), comma);
    put_role(out, "unk_token", tg_tokenizer_token(t, t->unk), comma);
}

static void write_special(const tg_tokenizer *t, tg_buf *out) {
    if (t->special_json) {
        tg_buf_puts(out, t->special_json);
        return;
    }
    const char *comma = "";
    tg_buf_putc(out, '{');
    put_roles(t, out, &comma);
    tg_buf_puts(out, "\n}\n");
}

static void write_config(const tg_tokenizer *t, tg_buf *out) {
    if (t->config_json) {
        tg_buf_puts(out, t->config_json);
        return;
    }
    const char *comma = ",";
    tg_buf_printf(out, "{\n  \"tokenizer_class\": \"%s\"",
                  t->marian ? "MarianTokenizer" : "PreTrainedTokenizerFast");
    put_roles(t, out, &comma);
    if (t->max_length != INT64_MAX)
        tg_buf_printf(out, ",\n  \"model_max_length\": %lld", (long long)t->max_length);
    tg_buf_puts(out, "\n}\n");
}

static void write_chat_template(const tg_tokenizer *t, tg_buf *out) {
    tg_buf_puts(out, t->chat_template);
}

static void write_vocab(const tg_tokenizer *t, tg_buf *out) {
    tg_vocab_write_json(&t->model->vocab, out);
    tg_buf_putc(out, '\n');
}

static void write_merges(const tg_tokenizer *t, tg_buf *out) {
    tg_bpe_write_merges(t->model, out);
}

static void write_spm(const tg_tokenizer *t, tg_buf *out) {
    tg_buf_append(out, t->spm.data, t->spm.len);
}

static void write_target(const tg_tokenizer *t, tg_buf *out) {
    write_spm(t->target, out);
}

static void write_ids(const tg_tokenizer *t, tg_buf *out) {
    tg_buf_puts(out, t->vocab_json);
}

static void write_vocab_txt(const tg_tokenizer *t, tg_buf *out) {
    tg_wordpiece_write_txt(t->model, out);
}

/* The file that holds the ids: a tokenizer.json, with its older forms beside it, or SentencePiece models. */
typedef enum form { ANY, JSON, SPM, MARIAN } form;

static form form_of(const tg_tokenizer *t) {
    return t->marian ? MARIAN : t->spm.len > 0 ? SPM : JSON;
}

tg_status tg_tokenizer_save(const tg_tokenizer *t, const char *folder, tg_error *err) {
    static const struct {
        const char *name;
        void (*write)(const tg_tokenizer *t, tg_buf *out);
        form form;
        const char *model; /* the only one with such a file; NULL: all */
    } file[] = {{"tokenizer_config.json", write_config, ANY, NULL},
                {"special_tokens_map.json", write_special, ANY, NULL},
                {"chat_template.jinja", write_chat_template, ANY, NULL},
                {"tokenizer.json", tg_tokenizer_write_json, JSON, NULL},
                {"vocab.json", write_vocab, JSON, "BPE"},
                {"merges.txt", write_merges, JSON, "BPE"},
                {"vocab.txt", write_vocab_txt, JSON, "WordPiece"},
                {"tokenizer.model", write_spm, SPM, NULL},
                {"source.spm", write_spm, MARIAN, NULL},
                {"target.spm", write_target, MARIAN, NULL},
                {"vocab.json", write_ids, MARIAN, NULL}};
    tg_status st = tg_dir_create(folder, err);
    tg_buf out = {0};
    for (size_t i = 0; i < sizeof file / sizeof file[0] && st == TG_OK; i++) {
        if (file[i].model && strcmp(file[i].model, t->model->ops->name)) continue;
        if (file[i].form != ANY && file[i].form != form_of(t)) continue;
        if (file[i].write == write_chat_template && !t->chat_template) continue;
        tg_buf_reset(&out);
        file[i].write(t, &out);
        char *path = tg_path_join(folder, file[i].name);
        st = path && !out.failed ? tg_file_write_atomic(path, out.data, out.len, err)
                                 : tg_fail_nomem(err, out.len);
        tg_free(path);
    }
    tg_buf_fini(&out);
    return st;
}
