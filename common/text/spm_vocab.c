/* Vocabularies and merges of SentencePiece models, as their families number them. Pure functions of the pieces. */
#include "common/text/spm_impl.h"

#include "common/base/alloc.h"
#include "common/text/utf8.h"

#include <stdlib.h>
#include <string.h>

const char *const tg_spm_languages[TG_SPM_LANGUAGES] = {
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN",
    "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP",
    "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN"};

const char *tg_spm_name(const tg_spm_maker *k, const char *key, const char *standard) {
    const json_t *value = json_object_get(k->config, key);
    if (!value) return standard;
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_string_value(value);
}

bool tg_spm_flag(const tg_spm_maker *k, const char *key, bool standard) {
    const json_t *value = json_object_get(k->config, key);
    return json_is_boolean(value) ? json_is_true(value) : standard;
}

int tg_spm_count(const tg_spm_maker *k, const char *key, int standard) {
    const json_t *value = json_object_get(k->config, key);
    double n = json_is_number(value) ? json_number_value(value) : standard;
    return n >= 0 && n < 100000 ? (int)n : standard;
}

bool tg_spm_piece_is(const tg_spm *m, size_t i, const char *text) {
    return i < m->n && m->pieces[i].len == strlen(text) &&
           !memcmp(m->pieces[i].text, text, m->pieces[i].len);
}

/* ---- vocabularies ---- */

static void put_scored(tg_spm_maker *k, const char *text, size_t len, double score) {
    if (k->out->failed) return;
    if (k->out->data[k->out->len - 1] != '[') tg_buf_puts(k->out, ",");
    tg_buf_puts(k->out, "\n[");
    tg_part_write_str(k->out, text, len);
    tg_buf_printf(k->out, ",%.17g%s]", score, score == (double)(int64_t)score ? ".0" : "");
}

static void put_named(tg_spm_maker *k, const char *text, double score) {
    put_scored(k, text, strlen(text), score);
}

void tg_spm_put_pieces(tg_spm_maker *k, size_t from) {
    for (size_t i = from; i < k->m->n; i++)
        put_scored(k, k->m->pieces[i].text, k->m->pieces[i].len, (double)k->m->pieces[i].score);
}

static void put_numbered(tg_spm_maker *k, const char *pattern, int first, int last, int step,
                         double score) {
    for (int i = first; i != last; i += step) {
        char text[32];
        snprintf(text, sizeof text, pattern, i);
        put_named(k, text, score);
    }
}

/* mBART and XLM-RoBERTa: fairseq's four tokens for the first three pieces. */
static void put_fairseq(tg_spm_maker *k) {
    static const char *const first[][2] = {{"bos_token", "<s>"},
                                           {"pad_token", "<pad>"},
                                           {"eos_token", "</s>"},
                                           {"unk_token", "<unk>"}};
    for (size_t i = 0; i < 4; i++) {
        const char *name = tg_spm_name(k, first[i][0], first[i][1]);
        put_named(k, name ? name : first[i][1], 0);
    }
    tg_spm_put_pieces(k, 3);
    for (size_t i = 0; k->family == TG_SPM_MBART && i < TG_SPM_LANGUAGES; i++)
        put_named(k, tg_spm_languages[i], 0);
    const char *mask = tg_spm_name(k, "mask_token", "<mask>");
    put_named(k, mask ? mask : "<mask>", 0);
}

int tg_spm_pegasus_offset(const tg_spm_maker *k) {
    int offset = tg_spm_count(k, "offset", 103);
    return offset > 2 ? offset : 2;
}

static void put_pegasus(tg_spm_maker *k) {
    const char *mask = tg_spm_name(k, "mask_token", "<mask_1>");
    const char *sent = tg_spm_name(k, "mask_token_sent", "<mask_2>");
    const char *pad = tg_spm_name(k, "pad_token", "<pad>");
    const char *eos = tg_spm_name(k, "eos_token", "</s>");
    put_named(k, pad ? pad : "<pad>", 0);
    put_named(k, eos ? eos : "</s>", 0);
    if (mask) put_named(k, mask, 0);
    if (sent && (!mask || strcmp(mask, sent))) put_named(k, sent, 0);
    put_numbered(k, "<unk_%d>", 2, tg_spm_pegasus_offset(k), 1, -100);
    tg_spm_put_pieces(k, 2);
}

void tg_spm_put_unigram(tg_spm_maker *k) {
    int extra = tg_spm_count(k, "extra_ids", 100);
    tg_buf_puts(k->out, "\"model\":{\"type\":\"Unigram\",\"byte_fallback\":false,\"vocab\":[");
    switch (k->family) {
    case TG_SPM_MBART:
    case TG_SPM_XLMR: put_fairseq(k); break;
    case TG_SPM_PEGASUS: put_pegasus(k); break;
    default: tg_spm_put_pieces(k, 0);
    }
    if (k->family == TG_SPM_T5) put_numbered(k, "<extra_id_%d>", extra - 1, -1, -1, 0);
    int64_t unk = k->family == TG_SPM_T5       ? 2
                  : k->family == TG_SPM_ALBERT ? 1
                  : k->family == TG_SPM_XLNET  ? k->m->unk_id
                                               : 3;
    if (k->family ==
        TG_SPM_PEGASUS) { /* behind the tokens that were put in front: the third piece */
        const char *mask = tg_spm_name(k, "mask_token", "<mask_1>");
        const char *sent = tg_spm_name(k, "mask_token_sent", "<mask_2>");
        unk = 2 + (mask != NULL) + (sent && (!mask || strcmp(mask, sent))) +
              tg_spm_pegasus_offset(k) - 2;
        for (size_t i = 2; i < k->m->n && !tg_spm_piece_is(k->m, i, "<unk>"); i++) unk++;
    }
    tg_buf_printf(k->out, "\n],\"unk_id\":%lld", (long long)unk);
}

/* ---- BPE ---- */

static tg_status index_pieces(const tg_spm *m, tg_map *ids, tg_error *err) {
    for (size_t i = 0; i < m->n; i++)
        if (!tg_map_set(ids, m->pieces[i].text, m->pieces[i].len, i))
            return tg_fail_nomem(err, m->n * sizeof(tg_map_entry));
    return TG_OK;
}

/* Every way to make the piece of two others, the shortest left part first. */
static void put_merges_of(tg_spm_maker *k, const tg_map *ids, const tg_spm_piece *piece,
                          bool *any) {
    for (size_t at = 0; at < piece->len;) {
        unsigned n;
        uint64_t id;
        tg_utf8_at(piece->text + at, &n);
        at += n;
        if (at >= piece->len || !tg_map_get(ids, piece->text, at, &id) ||
            !tg_map_get(ids, piece->text + at, piece->len - at, &id))
            continue;
        tg_buf_puts(k->out, *any ? ",\n[" : "\n[");
        tg_part_write_str(k->out, piece->text, at);
        tg_buf_putc(k->out, ',');
        tg_part_write_str(k->out, piece->text + at, piece->len - at);
        tg_buf_putc(k->out, ']');
        *any = true;
    }
}

static int by_score(const void *x, const void *y) {
    const tg_spm_piece *a = *(const tg_spm_piece *const *)x, *b = *(const tg_spm_piece *const *)y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a < b ? -1 : 1;
}

/* transformers merges in the order of ids, SentencePiece in that of scores; in most models they are the same. */
static tg_status put_merges(tg_spm_maker *k, const tg_map *ids, tg_error *err) {
    const tg_spm *m = k->m;
    const tg_spm_piece **order = tg_alloc_array(m->n + 1, sizeof *order);
    if (!order) return tg_fail_nomem(err, m->n * sizeof *order);
    for (size_t i = 0; i < m->n; i++) order[i] = &m->pieces[i];
    if (k->family == TG_SPM_PLAIN) qsort(order, m->n, sizeof *order, by_score);
    bool any = false;
    for (size_t i = 0; i < m->n; i++)
        if (k->family != TG_SPM_PLAIN || order[i]->type == TG_SPM_NORMAL)
            put_merges_of(k, ids, order[i], &any);
    tg_free(order);
    return TG_OK;
}

tg_status tg_spm_put_bpe(tg_spm_maker *k, const char *unk, tg_error *err) {
    tg_map ids = {0};
    tg_status st = index_pieces(k->m, &ids, err);
    tg_buf_puts(k->out, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":");
    if (unk)
        tg_part_write_str(k->out, unk, strlen(unk));
    else
        tg_buf_puts(k->out, "null");
    tg_buf_printf(k->out, ",\"fuse_unk\":true,\"byte_fallback\":%s,\"vocab\":{",
                  k->family != TG_SPM_PLAIN || k->m->byte_fallback ? "true" : "false");
    for (size_t i = 0; i < ids.count; i++) {
        tg_buf_puts(k->out, i ? ",\n" : "\n");
        tg_part_write_str(k->out, ids.entries[i].key, ids.entries[i].key_len);
        tg_buf_printf(k->out, ":%llu", (unsigned long long)ids.entries[i].value);
    }
    tg_buf_puts(k->out, "\n},\"merges\":[");
    if (st == TG_OK) st = put_merges(k, &ids, err);
    tg_buf_puts(k->out, "\n]");
    tg_map_fini(&ids);
    return st;
}
