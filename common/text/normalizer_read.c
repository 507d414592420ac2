/* Reading the "normalizer" part. Nested sequences and BertNormalizer are laid flat into steps. */
#include "common/text/normalizer.h"

#include "common/base/alloc.h"
#include "common/text/utf8.h"

#include <string.h>

static tg_status add(tg_normalizer *n, tg_norm_kind kind, tg_norm_step **out, const char *where,
                     tg_error *err) {
    if (n->n == TG_NORM_MAX)
        return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d steps", where, TG_NORM_MAX);
    n->step[n->n] = (tg_norm_step){.kind = kind};
    *out = &n->step[n->n++]; /* counted first, so that fini frees a half-read step */
    return TG_OK;
}

static tg_status add_if(tg_normalizer *n, bool wanted, tg_norm_kind kind, const char *where,
                        tg_error *err) {
    tg_norm_step *step;
    return wanted ? add(n, kind, &step, where, err) : TG_OK;
}

static tg_status read_bert(tg_normalizer *n, const json_t *part, const char *where, tg_error *err) {
    bool clean = true, chinese = true, lower = true, accents = true;
    tg_status st = tg_part_check(
        part, where, "type clean_text handle_chinese_chars strip_accents lowercase", err);
    if (st == TG_OK) st = tg_part_bool(part, where, "clean_text", true, &clean, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "handle_chinese_chars", true, &chinese, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "lowercase", true, &lower, err);
    if (st == TG_OK && json_is_null(json_object_get(part, "strip_accents")))
        accents = lower;
    else if (st == TG_OK)
        st = tg_part_bool(part, where, "strip_accents", lower, &accents, err);
    if (st == TG_OK) st = add_if(n, clean, TG_NORM_CLEAN, where, err);
    if (st == TG_OK) st = add_if(n, chinese, TG_NORM_CHINESE, where, err);
    if (st == TG_OK && accents) {
        tg_norm_step *step = NULL;
        st = add(n, TG_NORM_FORM, &step, where, err);
        if (st == TG_OK) step->form = TG_NFD;
        if (st == TG_OK) st = add(n, TG_NORM_ACCENTS, &step, where, err);
    }
    return st == TG_OK ? add_if(n, lower, TG_NORM_LOWER, where, err) : st;
}

static tg_status copy_text(char **out, const json_t *part, const char *where, const char *key,
                           tg_error *err) {
    const char *text;
    tg_status st = tg_part_str(part, where, key, &text, err);
    if (st != TG_OK) return st;
    if (!text) return tg_fail(err, TG_DATA, "%s.%s: expected a string", where, key);
    *out = tg_strdup(text);
    return *out ? TG_OK : tg_fail_nomem(err, strlen(text));
}

static tg_status read_replace(tg_norm_step *step, const json_t *part, const char *where,
                              tg_error *err) {
    tg_status st = tg_part_check(part, where, "type pattern content", err);
    if (st == TG_OK) st = copy_text(&step->text, part, where, "content", err);
    if (st != TG_OK) return st;
    const json_t *pattern = json_object_get(part, "pattern");
    const char *text = json_string_value(json_object_get(pattern, "String"));
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    if (!text == !regex || (text && !*text))
        return tg_fail(err, TG_DATA, "%s.pattern: expected {\"String\": …} or {\"Regex\": …}",
                       where);
    return tg_regex_create(&step->regex, regex ? regex : text, !regex, where, err);
}

static tg_status read_strip(tg_norm_step *step, const json_t *part, const char *where,
                            tg_error *err) {
    tg_status st = tg_part_check(part, where, "type strip_left strip_right", err);
    if (st == TG_OK) st = tg_part_bool(part, where, "strip_left", true, &step->left, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "strip_right", true, &step->right, err);
    return st;
}

static tg_status read_precompiled(tg_norm_step *step, const json_t *part, const char *where,
                                  tg_error *err) {
    const char *text = NULL;
    tg_status st = tg_part_check(part, where, "type precompiled_charsmap", err);
    if (st == TG_OK) st = tg_part_str(part, where, "precompiled_charsmap", &text, err);
    if (st != TG_OK || !text || !*text) return st;
    return tg_charsmap_read(&step->charsmap, text, where, err);
}

static const struct {
    const char *type;
    tg_norm_kind kind;
    tg_nf form;
} simple[] = {{"NFC", TG_NORM_FORM, TG_NFC},
              {"NFD", TG_NORM_FORM, TG_NFD},
              {"NFKC", TG_NORM_FORM, TG_NFKC},
              {"NFKD", TG_NORM_FORM, TG_NFKD},
              {"Lowercase", TG_NORM_LOWER, 0},
              {"StripAccents", TG_NORM_MARKS, 0},
              {"Nmt", TG_NORM_NMT, 0},
              {"Replace", TG_NORM_REPLACE, 0},
              {"Prepend", TG_NORM_PREPEND, 0},
              {"Strip", TG_NORM_STRIP, 0},
              {"Precompiled", TG_NORM_PRECOMPILED, 0},
              {"SentencePiece", TG_NORM_SENTENCEPIECE, 0}};

static tg_status read_step(tg_norm_step *step, const json_t *part, const char *where,
                           tg_error *err) {
    tg_status st;
    switch (step->kind) {
    case TG_NORM_REPLACE: return read_replace(step, part, where, err);
    case TG_NORM_STRIP: return read_strip(step, part, where, err);
    case TG_NORM_PRECOMPILED: return read_precompiled(step, part, where, err);
    case TG_NORM_SENTENCEPIECE: return tg_spm_norm_read(&step->spm, part, where, err);
    case TG_NORM_PREPEND:
        st = tg_part_check(part, where, "type prepend", err);
        return st == TG_OK ? copy_text(&step->text, part, where, "prepend", err) : st;
    default: return tg_part_check(part, where, "type", err);
    }
}

static tg_status read_part(tg_normalizer *n, const json_t *part, const char *where, int depth,
                           tg_error *err) {
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "%s.type: missing", where);
    if (depth > 4) return tg_fail(err, TG_DATA, "%s: nested too deep", where);
    if (!strcmp(type, "BertNormalizer")) return read_bert(n, part, where, err);
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++) {
        if (strcmp(type, simple[i].type)) continue;
        tg_norm_step *step = NULL;
        tg_status st = add(n, simple[i].kind, &step, where, err);
        if (st != TG_OK) return st;
        step->form = simple[i].form;
        return read_step(step, part, where, err);
    }
    if (strcmp(type, "Sequence"))
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: type \"%.40s\" is not built into this version (NFC, NFD, NFKC, NFKD, "
                       "BertNormalizer, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, "
                       "Precompiled and Sequence are)",
                       where, type);
    tg_status st = tg_part_check(part, where, "type normalizers", err);
    const json_t *list = json_object_get(part, "normalizers");
    if (st == TG_OK && !json_is_array(list))
        st = tg_fail(err, TG_DATA, "%s.normalizers: expected a list", where);
    for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++) {
        char inner[64];
        snprintf(inner, sizeof inner, "normalizer.normalizers[%zu]", i);
        st = read_part(n, json_array_get(list, i), inner, depth + 1, err);
    }
    return st;
}

tg_status tg_normalizer_read(tg_normalizer *n, const json_t *part, tg_error *err) {
    *n = (tg_normalizer){0};
    bool none = !part || json_is_null(part);
    n->json = none ? tg_strdup("null") : tg_part_dump(part);
    if (!n->json) return tg_fail_nomem(err, 0);
    return none ? TG_OK : read_part(n, part, "normalizer", 0, err);
}

void tg_normalizer_fini(tg_normalizer *n) {
    for (size_t i = 0; i < n->n; i++) {
        tg_regex_destroy(&n->step[i].regex);
        tg_charsmap_destroy(&n->step[i].charsmap);
        tg_spm_norm_destroy(&n->step[i].spm);
        tg_free(n->step[i].text);
    }
    tg_free(n->json);
    *n = (tg_normalizer){0};
}
