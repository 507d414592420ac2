/* Reading the "post_processor" part. The parts of a Sequence are run once on signs instead of tokens: a list of pieces,
 * each a list of items, as Hugging Face passes lists of encodings from part to part. What is left are the plans. */
#include "common/text/postproc.h"

#include "common/base/alloc.h"

#include <string.h>

enum { MAX_ITEMS = 256 }; /* of a row: more than any template has */

/* One row in the making: items, and where each piece of them ends. */
typedef struct layout {
    tg_post_item item[MAX_ITEMS];
    size_t n;
    size_t end[MAX_ITEMS];
    size_t n_pieces;
    bool special;
} layout;

static tg_status full(const char *where, tg_error *err) {
    return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d special tokens and texts in a row", where,
                   MAX_ITEMS);
}

static size_t piece_start(const layout *l, size_t piece) {
    return piece ? l->end[piece - 1] : 0;
}

static tg_status push(layout *l, tg_post_item item, const char *where, tg_error *err) {
    if (l->n == MAX_ITEMS) return full(where, err);
    l->item[l->n++] = item;
    return TG_OK;
}

static tg_status push_special(layout *l, int32_t id, uint8_t type, const char *where,
                              tg_error *err) {
    return push(l, (tg_post_item){.sequence = -1, .id = id, .type = type, .special = true}, where,
                err);
}

static tg_status read_id(const json_t *id, int32_t *out, const char *where, tg_error *err) {
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
        return tg_fail(err, TG_DATA, "%s: expected a token id", where);
    *out = (int32_t)json_integer_value(id);
    return TG_OK;
}

/* ---- parts ---- */

static tg_status apply_trim(tg_postproc *p, layout *l, bool prefix_space, const char *where,
                            tg_error *err) {
    p->trims = true;
    for (size_t piece = 0; piece < l->n_pieces; piece++) {
        for (size_t i = piece_start(l, piece); i < l->end[piece]; i++) {
            tg_post_item *item = &l->item[i];
            if (item->sequence < 0) continue;
            if (item->n_trims == TG_POSTPROC_TRIMS)
                return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d parts trim offsets", where,
                               TG_POSTPROC_TRIMS);
            item->trim[item->n_trims++] = (tg_post_trim){prefix_space, i == piece_start(l, piece)};
        }
    }
    return TG_OK;
}

static tg_status apply_byte_level(tg_postproc *p, layout *l, const json_t *part, const char *where,
                                  tg_error *err) {
    bool prefix, trim, use_regex; /* the last is used by the pre-tokenizer alone */
    tg_status st = tg_part_check(part, where, "type add_prefix_space trim_offsets use_regex", err);
    if (st == TG_OK) st = tg_part_bool(part, where, "add_prefix_space", true, &prefix, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "trim_offsets", true, &trim, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "use_regex", true, &use_regex, err);
    return st == TG_OK && trim ? apply_trim(p, l, prefix, where, err) : st;
}

/* cls A sep, then for BERT B sep, for RoBERTa sep B sep. */
static tg_status wrap(layout *l, int32_t cls, int32_t sep, bool roberta, const char *where,
                      tg_error *err) {
    layout *old = tg_alloc(sizeof *old);
    if (!old) return tg_fail_nomem(err, sizeof *old);
    *old = *l;
    l->n = 0;
    tg_status st = TG_OK;
    for (size_t piece = 0; piece < old->n_pieces && st == TG_OK; piece++) {
        uint8_t type = piece && !roberta;
        if (!piece || roberta) st = push_special(l, piece ? sep : cls, type, where, err);
        for (size_t i = piece_start(old, piece); i < old->end[piece] && st == TG_OK; i++) {
            tg_post_item item = old->item[i];
            item.special = false;
            if (roberta) item.rest_type = true;
            st = push(l, item, where, err);
        }
        if (st == TG_OK) st = push_special(l, sep, type, where, err);
        l->end[piece] = l->n;
    }
    tg_free(old);
    return st;
}

/* "sep": ["</s>", 2], "cls": ["<s>", 0] */
static tg_status apply_bert(tg_postproc *p, layout *l, const json_t *part, const char *where,
                            bool roberta, tg_error *err) {
    bool trim = false, prefix = false;
    int32_t cls = 0, sep = 0;
    tg_status st = tg_part_check(
        part, where, roberta ? "type sep cls trim_offsets add_prefix_space" : "type sep cls", err);
    if (st == TG_OK && roberta) st = tg_part_bool(part, where, "trim_offsets", true, &trim, err);
    if (st == TG_OK && roberta)
        st = tg_part_bool(part, where, "add_prefix_space", true, &prefix, err);
    if (st == TG_OK)
        st = read_id(json_array_get(json_object_get(part, "cls"), 1), &cls, where, err);
    if (st == TG_OK)
        st = read_id(json_array_get(json_object_get(part, "sep"), 1), &sep, where, err);
    if (st == TG_OK && trim) st = apply_trim(p, l, prefix, where, err);
    for (size_t i = 0; st == TG_OK && roberta && i < l->n; i++) l->item[i].type = 0;
    return st == TG_OK && l->special ? wrap(l, cls, sep, roberta, where, err) : st;
}

/* Ids of one special token of a template: "special_tokens": {"<s>": {"id": "<s>", "ids": [1],
 * "tokens": ["<s>"]}} */
static tg_status push_template_token(layout *l, const json_t *specials, const char *name,
                                     uint8_t type, const char *where, tg_error *err) {
    const json_t *list = json_object_get(name ? json_object_get(specials, name) : NULL, "ids");
    if (!json_is_array(list))
        return tg_fail(err, TG_DATA, "%s.special_tokens: no ids for '%.40s'", where,
                       name ? name : "");
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++) {
        int32_t id;
        st = read_id(json_array_get(list, i), &id, where, err);
        if (st == TG_OK) st = push_special(l, id, type, where, err);
    }
    return st;
}

static tg_status read_type(const json_t *piece, uint8_t *type, const char *where, tg_error *err) {
    const json_t *value = json_object_get(piece, "type_id");
    json_int_t v = json_integer_value(value);
    if ((value && !json_is_integer(value)) || v < 0 || v > UINT8_MAX)
        return tg_fail(err, TG_DATA, "%s: type_id: expected a number in 0..255", where);
    *type = (uint8_t)v;
    return TG_OK;
}

/* Copies the text "A" or "B" names, with all that stands around it already. */
static tg_status push_template_text(layout *l, const layout *old, const json_t *piece, uint8_t type,
                                    const char *where, tg_error *err) {
    const char *id = json_string_value(json_object_get(piece, "id"));
    if (!id || (strcmp(id, "A") && strcmp(id, "B")))
        return tg_fail(err, TG_DATA, "%s: a Sequence is \"A\" or \"B\"", where);
    size_t which = *id == 'B';
    if (which >= old->n_pieces)
        return tg_fail(err, TG_DATA, "%s.single: names the second text", where);
    tg_status st = TG_OK;
    for (size_t i = piece_start(old, which); i < old->end[which] && st == TG_OK; i++) {
        tg_post_item item = old->item[i];
        item.type = type;
        st = push(l, item, where, err);
    }
    return st;
}

/* "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, …] */
static tg_status lay_template(layout *l, const layout *old, const json_t *part, const char *where,
                              tg_error *err) {
    const char *key = old->n_pieces == 2 ? "pair" : "single";
    const json_t *list = json_object_get(part, key);
    const json_t *specials = json_object_get(part, "special_tokens");
    if (!json_is_array(list)) return tg_fail(err, TG_DATA, "%s.%s: expected a list", where, key);
    tg_status st = TG_OK;
    l->n = l->n_pieces = 0;
    for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++) {
        const json_t *piece = json_array_get(list, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        const json_t *text = json_object_get(piece, "Sequence");
        uint8_t type = 0;
        if (!special == !text)
            return tg_fail(err, TG_DATA, "%s.%s[%zu]: expected a SpecialToken or a Sequence", where,
                           key, i);
        st = read_type(special ? special : text, &type, where, err);
        if (st == TG_OK && text)
            st = push_template_text(l, old, text, type, where, err);
        else if (st == TG_OK && l->special)
            st = push_template_token(l, specials, json_string_value(json_object_get(special, "id")),
                                     type, where, err);
        if (st == TG_OK && l->n_pieces == MAX_ITEMS) st = full(where, err);
        if (st == TG_OK) l->end[l->n_pieces++] = l->n;
    }
    return st;
}

static tg_status apply_template(layout *l, const json_t *part, const char *where, tg_error *err) {
    tg_status st = tg_part_check(part, where, "type single pair special_tokens", err);
    if (st != TG_OK) return st;
    if (l->n_pieces > 2)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: a template after a template is not built into this version", where);
    layout *old = tg_alloc(sizeof *old);
    if (!old) return tg_fail_nomem(err, sizeof *old);
    *old = *l;
    st = lay_template(l, old, part, where, err);
    tg_free(old);
    return st;
}

/* ---- the whole ---- */

static tg_status apply(tg_postproc *p, layout *l, const json_t *part, const char *where, int depth,
                       tg_error *err) {
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "%s.type: missing", where);
    if (!strcmp(type, "Sequence") && depth < 4) {
        tg_status st = tg_part_check(part, where, "type processors", err);
        const json_t *list = json_object_get(part, "processors");
        if (st == TG_OK && !json_is_array(list))
            st = tg_fail(err, TG_DATA, "%s.processors: expected a list", where);
        for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++)
            st = apply(p, l, json_array_get(list, i), "post_processor.processors", depth + 1, err);
        return st;
    }
    if (!strcmp(type, "ByteLevel")) return apply_byte_level(p, l, part, where, err);
    if (!strcmp(type, "RobertaProcessing")) return apply_bert(p, l, part, where, true, err);
    if (!strcmp(type, "BertProcessing")) return apply_bert(p, l, part, where, false, err);
    if (!strcmp(type, "TemplateProcessing")) return apply_template(l, part, where, err);
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: type \"%.40s\" is not built into this version (ByteLevel, "
                   "RobertaProcessing, BertProcessing, TemplateProcessing and Sequence are)",
                   where, type);
}

static tg_status make_plan(tg_postproc *p, const json_t *part, layout *l, bool pair, bool special,
                           tg_error *err) {
    *l = (layout){.special = special};
    for (int i = 0; i <= (int)pair; i++) {
        l->item[l->n++] = (tg_post_item){.sequence = i, .type = (uint8_t)i};
        l->end[l->n_pieces++] = l->n;
    }
    tg_status st = part ? apply(p, l, part, "post_processor", 0, err) : TG_OK;
    if (st != TG_OK) return st;
    tg_post_plan *plan = &p->plan[pair][special];
    plan->item = tg_alloc_array(l->n + 1, sizeof *plan->item);
    if (!plan->item) return tg_fail_nomem(err, l->n * sizeof *plan->item);
    memcpy(plan->item, l->item, l->n * sizeof *plan->item);
    plan->n = l->n;
    for (size_t i = 0; special && i < l->n; i++) p->added[pair] += l->item[i].sequence < 0;
    return TG_OK;
}

tg_status tg_postproc_read(tg_postproc *p, const json_t *part, tg_error *err) {
    *p = (tg_postproc){0};
    if (json_is_null(part)) part = NULL;
    p->json = part ? tg_part_dump(part) : tg_strdup("null");
    layout *l = tg_alloc(sizeof *l);
    tg_status st = p->json && l ? TG_OK : tg_fail_nomem(err, sizeof *l);
    for (int i = 0; i < 4 && st == TG_OK; i++) st = make_plan(p, part, l, i / 2, i % 2, err);
    tg_free(l);
    return st;
}

void tg_postproc_fini(tg_postproc *p) {
    for (int i = 0; i < 4; i++) tg_free(p->plan[i / 2][i % 2].item);
    tg_free(p->blanks);
    tg_free(p->json);
    *p = (tg_postproc){0};
}
