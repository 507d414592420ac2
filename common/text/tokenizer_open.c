/* Reading a tokenizer: which files of a folder it is made of, and what depends on all of its parts. */
#include "common/text/tokenizer_impl.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/marian.h"
#include "common/text/spm.h"

#include <string.h>

static tg_status create(tg_tokenizer **out, tg_error *err) {
    tg_tokenizer *t = tg_alloc(sizeof *t);
    if (!t) return tg_fail_nomem(err, sizeof *t);
    t->pool = tg_alloc(sizeof *t->pool);
    if (!t->pool) {
        tg_free(t);
        return tg_fail_nomem(err, sizeof *t->pool);
    }
    tg_scratch_pool_init(t->pool);
    t->bos = t->eos = t->pad = t->unk = -1;
    t->max_length = INT64_MAX;
    *out = t;
    return TG_OK;
}

tg_status tg_tokenizer_read_parts(tg_tokenizer *t, const json_t *root, tg_error *err) {
    tg_status st = tg_normalizer_read(&t->normalizer, json_object_get(root, "normalizer"), err);
    if (st == TG_OK) st = tg_pretok_read(&t->pretok, json_object_get(root, "pre_tokenizer"), err);
    if (st == TG_OK)
        st = tg_postproc_read(&t->postproc, json_object_get(root, "post_processor"), err);
    if (st == TG_OK) st = tg_text_decoder_read(&t->decoder, json_object_get(root, "decoder"), err);
    return st;
}

/* truncation and padding are presets that transformers replaces at each call: they are read past, not applied. */
static tg_status read_root(tg_tokenizer *t, const json_t *root, const char *path, tg_error *err) {
    tg_status st = tg_part_check(root, "tokenizer.json",
                                 "version truncation padding added_tokens normalizer pre_tokenizer "
                                 "post_processor decoder model",
                                 err);
    const char *version = json_string_value(json_object_get(root, "version"));
    if (st == TG_OK && (!version || strcmp(version, "1.0")))
        st = tg_fail(err, TG_UNSUPPORTED, "version: expected \"1.0\", found \"%.20s\"",
                     version ? version : "none");
    if (st == TG_OK) st = tg_tokenizer_read_parts(t, root, err);
    if (st == TG_OK)
        st = tg_text_model_read(&t->model, json_object_get(root, "model"), t->pretok.byte_level,
                                err);
    if (st == TG_OK)
        st = tg_added_read(&t->added, json_object_get(root, "added_tokens"), &t->model->vocab, err);
    if (st != TG_OK && err) tg_error_prefix(err, "%s: ", path);
    return st;
}

static bool is_spm(const char *path) {
    size_t len = strlen(path);
    return len > 6 && !strcmp(path + len - 6, ".model");
}

/* A tokenizer.json, or a SentencePiece model. */
static tg_status read_whole(tg_tokenizer *t, const char *path, const tg_side_files *f,
                            tg_error *err) {
    json_t *root = NULL;
    const char *type = json_string_value(json_object_get(f->model, "model_type"));
    tg_status st = is_spm(path) ? tg_spm_load(path, f->tokenizer, type, &root, &t->spm, err)
                                : tg_part_load(path, false, &root, err);
    if (st == TG_OK) st = read_root(t, root, path, err);
    const char *norm = tg_part_type(json_object_get(root, "normalizer"));
    /* Only a model that stays SentencePiece's own is saved as such a file. */
    if (!norm || strcmp(norm, "SentencePiece")) tg_buf_fini(&t->spm);
    json_decref(root);
    return st;
}

static const char *text_of(const void *arg, int32_t id) {
    return ((const tg_tokenizer *)arg)->token[id];
}

/* Builds what depends on all parts: id tables, matchers, decoder. */
static tg_status finish(tg_tokenizer *t, tg_error *err) {
    const tg_vocab *v = &t->model->vocab;
    const int32_t tokens = t->model->known ? t->model->known : v->size;
    t->size = tokens;
    for (size_t i = 0; i < t->added.n; i++)
        if (t->added.tokens[i].id >= t->size) t->size = t->added.tokens[i].id + 1;
    t->token = tg_alloc_array((size_t)t->size + 1, sizeof *t->token);
    t->special = tg_alloc_array((size_t)t->size + 1, sizeof *t->special);
    if (!t->token || !t->special) return tg_fail_nomem(err, (size_t)t->size * sizeof *t->token);
    for (int32_t id = 0; id < tokens; id++) t->token[id] = v->token[id];
    for (size_t i = 0; i < t->added.n; i++) {
        const tg_added_token *a = &t->added.tokens[i];
        t->token[a->id] = a->content;
        t->special[a->id] = a->special;
    }
    /* SentencePiece's control symbols are not found in text, so they are no added tokens, but special they are. */
    const int32_t roles[] = {t->bos, t->eos, t->pad, t->unk};
    for (size_t i = 0; t->spm.len && i < 4; i++)
        if (roles[i] >= 0 && roles[i] < t->size) t->special[roles[i]] = true;
    tg_status st = tg_added_build(&t->added, &t->normalizer, err);
    /* A token that is searched in normalised text is shown so, too, as in Hugging Face. */
    for (size_t i = 0; st == TG_OK && i < t->added.normal.n; i++) {
        const tg_pattern *p = &t->added.normal.patterns[i];
        const tg_added_token *named = tg_added_find(&t->added, p->text, p->len);
        t->token[p->token->id] = p->text;
        t->special[p->token->id] = named && named->special; /* it is known by what it is shown as */
    }
    if (st == TG_OK) st = tg_postproc_build(&t->postproc, t->size, text_of, t, err);
    if (st == TG_OK) st = tg_text_decoder_build(&t->decoder, t->size, text_of, t, err);
    return st;
}

/* Does the folder hold the file? *path (owned) is its path. */
static tg_status look(const char *folder, const char *name, char **path, bool *found,
                      tg_error *err) {
    *path = tg_path_join(folder, name);
    if (!*path) return tg_fail_nomem(err, strlen(folder));
    *found = tg_path_exists(*path);
    return TG_OK;
}

static tg_status try_pair(tg_tokenizer *t, const char *folder, const char *vocab,
                          const char *merges, const tg_side_files *f, bool *found, tg_error *err) {
    char *a = NULL, *b = NULL;
    bool has_a = false, has_b = false;
    tg_status st = look(folder, vocab, &a, &has_a, err);
    if (st == TG_OK) st = look(folder, merges, &b, &has_b, err);
    *found = has_a && has_b;
    if (st == TG_OK && *found) st = tg_legacy_pair(t, folder, a, b, f, err);
    tg_free(a);
    tg_free(b);
    return st;
}

static tg_status try_one(tg_tokenizer *t, const char *folder, const char *name,
                         const tg_side_files *f, bool *found, tg_error *err) {
    char *path = NULL;
    tg_status st = look(folder, name, &path, found, err);
    if (st == TG_OK && *found)
        st = !strcmp(name, "vocab.txt") ? tg_legacy_vocab_txt(t, folder, path, f, err)
                                        : read_whole(t, path, f, err);
    tg_free(path);
    return st;
}

static tg_status read_side(tg_tokenizer *t, const char *folder, const char *name,
                           const json_t *vocab, const tg_side_files *f, tg_error *err) {
    enum { MAX_LENGTH = 512 }; /* of Marian, when no file says otherwise */
    char *path = tg_path_join(folder, name);
    json_t *root = NULL;
    tg_status st = path ? tg_marian_load(path, vocab, f->tokenizer, &root, &t->spm, err)
                        : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) st = read_root(t, root, path, err);
    t->marian = true;
    t->max_length = MAX_LENGTH;
    json_decref(root);
    tg_free(path);
    return st;
}

/* Both languages of a Marian tokenizer. */
static tg_status read_marian(tg_tokenizer *t, const char *folder, const tg_side_files *f,
                             tg_error *err) {
    char *path = tg_path_join(folder, "vocab.json");
    tg_buf text = {0};
    json_t *vocab = NULL;
    tg_status st =
        path ? tg_file_read(path, (size_t)1 << 30, &text, err) : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) st = tg_part_parse(path, text.data, text.len, false, &vocab, err);
    if (st == TG_OK && !(t->vocab_json = tg_buf_take(&text))) st = tg_fail_nomem(err, text.len);
    if (st == TG_OK) st = read_side(t, folder, "source.spm", vocab, f, err);
    if (st == TG_OK) st = create(&t->target, err);
    if (st == TG_OK) st = read_side(t->target, folder, "target.spm", vocab, f, err);
    json_decref(vocab);
    tg_buf_fini(&text);
    tg_free(path);
    return st;
}

static tg_status try_marian(tg_tokenizer *t, const char *folder, const tg_side_files *f,
                            bool *found, tg_error *err) {
    char *path = NULL;
    tg_status st = look(folder, "source.spm", &path, found, err);
    if (st == TG_OK && *found) st = read_marian(t, folder, f, err);
    tg_free(path);
    return st;
}

/* In the order in which they are looked for; source.spm comes behind them. */
static const char *const files[][2] = {{"tokenizer.json"},
                                       {"vocab.json", "merges.txt"},
                                       {"encoder.json", "vocab.bpe"},
                                       {"vocab.txt"},
                                       {"spiece.model"},
                                       {"tokenizer.model"},
                                       {"sentencepiece.bpe.model"},
                                       {"sentencepiece.model"}};

bool tg_tokenizer_is_there(const char *folder) {
    bool found = false;
    for (size_t i = 0; i <= sizeof files / sizeof files[0] && !found; i++) {
        const char *name = i < sizeof files / sizeof files[0] ? files[i][0] : "source.spm";
        char *path = tg_path_join(folder, name);
        found = path && tg_path_exists(path);
        tg_free(path);
    }
    return found;
}

static tg_status read_folder(tg_tokenizer *t, const char *folder, const tg_side_files *f,
                             tg_error *err) {
    bool found = false;
    tg_status st = TG_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !found && st == TG_OK; i++)
        st = files[i][1] ? try_pair(t, folder, files[i][0], files[i][1], f, &found, err)
                         : try_one(t, folder, files[i][0], f, &found, err);
    if (st == TG_OK && !found) st = try_marian(t, folder, f, &found, err);
    if (st != TG_OK || found) return st;
    if (!tg_path_is_dir(folder))
        return tg_fail(err, TG_NOINPUT, "tokenizer: '%s' is not there", folder);
    return tg_fail(
        err, TG_NOINPUT,
        "tokenizer: '%s' holds none of tokenizer.json, vocab.json + merges.txt, "
        "encoder.json + vocab.bpe, vocab.txt, spiece.model, tokenizer.model, "
        "sentencepiece.bpe.model, source.spm + target.spm + vocab.json: copy the files of "
        "the model's tokenizer there, or name a folder that has them",
        folder);
}

tg_status tg_tokenizer_open(tg_tokenizer **out, const char *path, tg_error *err) {
    *out = NULL;
    tg_tokenizer *t;
    tg_status st = create(&t, err);
    if (st != TG_OK) return st;
    bool is_file = tg_path_exists(path) && !tg_path_is_dir(path);
    const char *slash = is_file ? strrchr(path, '/') : NULL;
    char *folder = !is_file ? tg_strdup(path)
                   : slash  ? tg_strndup(path, (size_t)(slash - path) + 1)
                            : tg_strdup(".");
    if (!folder) st = tg_fail_nomem(err, strlen(path));
    tg_side_files f = {0};
    if (st == TG_OK) st = tg_side_files_load(t, folder, &f, err);
    if (st == TG_OK) st = is_file ? read_whole(t, path, &f, err) : read_folder(t, folder, &f, err);
    if (st == TG_OK) st = tg_settings_apply(t, &f, err);
    if (st == TG_OK && t->target) st = tg_settings_apply(t->target, &f, err);
    tg_side_files_fini(&f);
    if (st == TG_OK) st = finish(t, err);
    if (st == TG_OK && t->target) st = finish(t->target, err);
    tg_free(folder);
    if (st == TG_OK)
        *out = t;
    else
        tg_tokenizer_destroy(&t);
    return st;
}

tg_status tg_tokenizer_parse(tg_tokenizer **out, const char *json, size_t len, const char *config,
                             tg_error *err) {
    *out = NULL;
    tg_tokenizer *t;
    tg_status st = create(&t, err);
    if (st != TG_OK) return st;
    json_t *root = NULL;
    st = tg_part_parse("tokenizer.json", json, len, false, &root, err);
    if (st == TG_OK) st = read_root(t, root, "tokenizer.json", err);
    json_decref(root);
    if (st == TG_OK) st = tg_settings_parse(t, config, err);
    if (st == TG_OK) st = finish(t, err);
    if (st == TG_OK)
        *out = t;
    else
        tg_tokenizer_destroy(&t);
    return st;
}
