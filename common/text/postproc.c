/* Reading and running post-processors. Parts run in order: trimming by a later part also sees the
 * special tokens of an earlier one, as in Hugging Face. */
#include "common/text/postproc.h"

#include "common/base/alloc.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <string.h>

static tg_status bad_id(tg_error *err, const char *where) {
    return tg_fail(err, TG_DATA, "%s: expected a token id", where);
}

static tg_status push_id(tg_ids *ids, const json_t *id, const char *where, tg_error *err) {
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
        return bad_id(err, where);
    return tg_ids_push(ids, (int32_t)json_integer_value(id)) ? TG_OK
                                                             : tg_fail_nomem(err, sizeof(int32_t));
}

static tg_status read_byte_level(tg_postproc_part *p, const json_t *part, const char *where,
                                 tg_error *err) {
    bool use_regex; /* used by the pre-tokenizer alone */
    tg_status st = tg_part_check(part, where, "type add_prefix_space trim_offsets use_regex", err);
    if (st == TG_OK)
        st = tg_part_bool(part, where, "add_prefix_space", true, &p->prefix_space, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "trim_offsets", true, &p->trim, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "use_regex", true, &use_regex, err);
    return st;
}

/* "sep": ["</s>", 2], "cls": ["<s>", 0] */
static tg_status read_roberta(tg_postproc_part *p, const json_t *part, const char *where,
                              bool trims, tg_error *err) {
    tg_status st = tg_part_check(
        part, where, trims ? "type sep cls trim_offsets add_prefix_space" : "type sep cls", err);
    if (st == TG_OK && trims) st = tg_part_bool(part, where, "trim_offsets", true, &p->trim, err);
    if (st == TG_OK && trims)
        st = tg_part_bool(part, where, "add_prefix_space", true, &p->prefix_space, err);
    if (st == TG_OK)
        st = push_id(&p->before, json_array_get(json_object_get(part, "cls"), 1), where, err);
    if (st == TG_OK)
        st = push_id(&p->after, json_array_get(json_object_get(part, "sep"), 1), where, err);
    return st;
}

/* Ids of one special token of a template: "special_tokens": {"<s>": {"id": "<s>", "ids": [1],
 * "tokens": ["<s>"]}} */
static tg_status read_special(tg_ids *ids, const json_t *specials, const char *name,
                              const char *where, tg_error *err) {
    const json_t *list = name ? json_object_get(json_object_get(specials, name), "ids") : NULL;
    if (!json_is_array(list))
        return tg_fail(err, TG_DATA, "%s: special token '%.60s' is not in special_tokens", where,
                       name ? name : "");
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++)
        st = push_id(ids, json_array_get(list, i), where, err);
    return st;
}

/* "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, …]. "pair" is checked when
 * pairs are built. */
static tg_status read_template(tg_postproc_part *p, const json_t *part, const char *where,
                               tg_error *err) {
    tg_status st = tg_part_check(part, where, "type single pair special_tokens", err);
    const json_t *single = json_object_get(part, "single"),
                 *specials = json_object_get(part, "special_tokens");
    if (st == TG_OK && !json_is_array(single))
        st = tg_fail(err, TG_DATA, "%s.single: expected a list", where);
    int sequences = 0;
    for (size_t i = 0; st == TG_OK && i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        if (json_object_get(piece, "Sequence"))
            sequences++;
        else if (special)
            st = read_special(sequences ? &p->after : &p->before, specials,
                              json_string_value(json_object_get(special, "id")), where, err);
        else
            st = tg_fail(err, TG_DATA, "%s.single[%zu]: expected a SpecialToken or a Sequence",
                         where, i);
    }
    if (st == TG_OK && sequences != 1)
        st = tg_fail(err, TG_UNSUPPORTED,
                     "%s.single: the sequence must occur once, it does %d times", where, sequences);
    return st;
}

static tg_status read_part(tg_postproc *p, const json_t *part, const char *where, int depth,
                           tg_error *err) {
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "%s.type: missing", where);
    if (!strcmp(type, "Sequence") && depth < 4) {
        tg_status st = tg_part_check(part, where, "type processors", err);
        const json_t *list = json_object_get(part, "processors");
        if (st == TG_OK && !json_is_array(list))
            st = tg_fail(err, TG_DATA, "%s.processors: expected a list", where);
        for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++)
            st = read_part(p, json_array_get(list, i), "post_processor.processors", depth + 1, err);
        return st;
    }
    if (p->n == TG_POSTPROC_MAX)
        return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d parts", where, TG_POSTPROC_MAX);
    tg_postproc_part *next =
        &p->part[p->n++]; /* counted first, so that fini frees a half-read part */
    if (!strcmp(type, "ByteLevel")) return read_byte_level(next, part, where, err);
    if (!strcmp(type, "RobertaProcessing")) return read_roberta(next, part, where, true, err);
    if (!strcmp(type, "BertProcessing")) return read_roberta(next, part, where, false, err);
    if (!strcmp(type, "TemplateProcessing")) return read_template(next, part, where, err);
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: type \"%.40s\" is not built into this version (ByteLevel, "
                   "RobertaProcessing, BertProcessing, "
                   "TemplateProcessing and Sequence are)",
                   where, type);
}

tg_status tg_postproc_read(tg_postproc *p, const json_t *part, tg_error *err) {
    *p = (tg_postproc){0};
    bool none = !part || json_is_null(part);
    p->json = none ? tg_strdup("null") : tg_part_dump(part);
    if (!p->json) return tg_fail_nomem(err, 0);
    return none ? TG_OK : read_part(p, part, "post_processor", 0, err);
}

void tg_postproc_fini(tg_postproc *p) {
    for (size_t i = 0; i < p->n; i++) {
        tg_ids_fini(&p->part[i].before);
        tg_ids_fini(&p->part[i].after);
    }
    tg_free(p->json);
    *p = (tg_postproc){0};
}

void tg_postproc_blanks(const char *text, size_t len, uint32_t *leading, uint32_t *trailing) {
    bool inside = false;
    *leading = *trailing = 0;
    for (size_t i = 0; i < len;) {
        unsigned n;
        uint32_t cp = tg_utf8_at(text + i, &n);
        bool blank = cp == 0x120 || tg_unicode_class(cp) == TG_CP_SPACE;
        if (blank && !inside) ++*leading;
        inside |= !blank;
        *trailing = blank ? *trailing + 1 : 0;
        i += n;
    }
}

static void trim(const tg_postproc_part *p, tg_span *span, bool first, uint32_t leading,
                 uint32_t trailing) {
    /* One space at the start may be the one that we added ourselves, which is not part of the text. */
    if (leading == 1 && (first || span->start == 0) && p->prefix_space) leading = 0;
    if (leading)
        span->start = span->start + leading < span->end ? span->start + leading : span->end;
    if (trailing && span->end >= trailing)
        span->end = span->end - trailing > span->start ? span->end - trailing : span->start;
}

/* inserted: special tokens that stand before the places which the strips name. */
static void trim_all(const tg_postproc_part *p, tg_sink *out, size_t start, size_t inserted,
                     tg_token_text_fn *text, const void *arg) {
    size_t next = 0; /* strip */
    for (size_t i = start; i < out->ids->n; i++) {
        uint32_t leading = 0, trailing = 0;
        if (next < out->strips->n && out->strips->data[next].at + inserted == i) {
            leading = out->strips->data[next].leading, trailing = out->strips->data[next].trailing;
            next++;
        } else {
            const char *token = text(arg, out->ids->data[i]);
            if (token) tg_postproc_blanks(token, strlen(token), &leading, &trailing);
        }
        trim(p, &out->spans->data[i], i == start, leading, trailing);
    }
}

/* Puts ids at place `at` of the output. */
static bool insert(tg_sink *out, size_t at, const tg_ids *ids) {
    if (!ids->n) return true;
    if (!tg_ids_reserve(out->ids, ids->n)) return false;
    int32_t *to = out->ids->data + at;
    memmove(to + ids->n, to, (out->ids->n - at) * sizeof *to);
    memcpy(to, ids->data, ids->n * sizeof *to);
    out->ids->n += ids->n;
    if (!out->spans) return true;
    if (!tg_spans_reserve(out->spans, ids->n)) return false;
    tg_span *span = out->spans->data + at;
    memmove(span + ids->n, span, (out->spans->n - at) * sizeof *span);
    memset(span, 0, ids->n * sizeof *span);
    out->spans->n += ids->n;
    return true;
}

tg_status tg_postproc_run(const tg_postproc *p, bool special, tg_sink *out, size_t start,
                          tg_token_text_fn *text, const void *arg, tg_error *err) {
    size_t inserted = 0;
    for (size_t k = 0; k < p->n; k++) {
        const tg_postproc_part *part = &p->part[k];
        if (part->trim && out->spans) trim_all(part, out, start, inserted, text, arg);
        if (!special) continue;
        if (!insert(out, start, &part->before) || !insert(out, out->ids->n, &part->after))
            return tg_fail_nomem(err, sizeof(int32_t));
        inserted += part->before.n;
    }
    return TG_OK;
}
