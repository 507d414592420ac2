/* Reading the "decoder" part: its steps, and where the Fuse stands. */
#include "common/text/text_decoder.h"

#include "common/base/alloc.h"
#include "common/text/utf8.h"

#include <string.h>

static tg_status copy(char **out, const char *text, const char *where, const char *key,
                      tg_error *err) {
    if (!text) return tg_fail(err, TG_DATA, "%s.%s: expected a string", where, key);
    *out = tg_strdup(text);
    return *out ? TG_OK : tg_fail_nomem(err, strlen(text));
}

static tg_status read_wordpiece(tg_decoder_step *step, const json_t *part, const char *where,
                                tg_error *err) {
    const char *prefix;
    tg_status st = tg_part_check(part, where, "type prefix cleanup", err);
    if (st == TG_OK) st = tg_part_str(part, where, "prefix", &prefix, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "cleanup", true, &step->option, err);
    return st == TG_OK ? copy(&step->from, prefix, where, "prefix", err) : st;
}

static tg_status read_bpe(tg_text_decoder *d, tg_decoder_step *step, const json_t *part,
                          const char *where, tg_error *err) {
    const char *suffix = NULL;
    tg_status st = tg_part_check(part, where, "type suffix", err);
    if (st == TG_OK) st = tg_part_str(part, where, "suffix", &suffix, err);
    d->last_differs = true;
    return st == TG_OK ? copy(&step->from, suffix ? suffix : "</w>", where, "suffix", err) : st;
}

static tg_status read_metaspace(tg_decoder_step *step, const json_t *part, const char *where,
                                tg_error *err) {
    const char *mark = NULL, *scheme = NULL;
    bool prefix = true, split;
    tg_status st = tg_part_check(
        part, where, "type replacement str_rep add_prefix_space prepend_scheme split", err);
    if (st == TG_OK) st = tg_part_str(part, where, "replacement", &mark, err);
    if (st == TG_OK) st = tg_part_str(part, where, "prepend_scheme", &scheme, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "add_prefix_space", true, &prefix, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "split", true, &split, err);
    if (st == TG_OK && (!mark || !*mark))
        st = tg_fail(err, TG_DATA, "%s.replacement: expected one character", where);
    step->option = scheme ? !strcmp(scheme, "never") : !prefix;
    return st == TG_OK ? copy(&step->from, mark, where, "replacement", err) : st;
}

static tg_status read_replace(tg_decoder_step *step, const json_t *part, const char *where,
                              tg_error *err) {
    tg_status st = tg_part_check(part, where, "type pattern content", err);
    if (st != TG_OK) return st;
    const char *text =
        json_string_value(json_object_get(json_object_get(part, "pattern"), "String"));
    if (!text || !*text)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s.pattern: only {\"String\": …} is built into this version", where);
    st = copy(&step->from, text, where, "pattern", err);
    const char *to = json_string_value(json_object_get(part, "content"));
    return st == TG_OK ? copy(&step->to, to, where, "content", err) : st;
}

static tg_status read_strip(tg_decoder_step *step, const json_t *part, const char *where,
                            tg_error *err) {
    tg_status st = tg_part_check(part, where, "type content start stop", err);
    if (st != TG_OK) return st;
    json_int_t start = json_integer_value(json_object_get(part, "start"));
    json_int_t stop = json_integer_value(json_object_get(part, "stop"));
    const char *text = json_string_value(json_object_get(part, "content"));
    if (!text || tg_utf8_count(text, strlen(text)) != 1)
        return tg_fail(err, TG_DATA, "%s.content: expected one character", where);
    if (start < 0 || stop < 0 || start > INT32_MAX || stop > INT32_MAX)
        return tg_fail(err, TG_DATA, "%s: start and stop: expected counts", where);
    step->start = (uint32_t)start, step->stop = (uint32_t)stop;
    return copy(&step->from, text, where, "content", err);
}

static const struct {
    const char *type;
    tg_decoder_kind kind;
} kinds[] = {{"ByteLevel", TG_DECODER_BYTE_LEVEL},
             {"WordPiece", TG_DECODER_WORDPIECE},
             {"BPEDecoder", TG_DECODER_BPE},
             {"Metaspace", TG_DECODER_METASPACE},
             {"Replace", TG_DECODER_REPLACE},
             {"Strip", TG_DECODER_STRIP},
             {"ByteFallback", TG_DECODER_BYTE_FALLBACK},
             {"Fuse", TG_DECODER_FUSE}};

static tg_status read_step(tg_text_decoder *d, tg_decoder_step *step, const json_t *part,
                           const char *where, tg_error *err) {
    switch (step->kind) {
    case TG_DECODER_BYTE_LEVEL:
        /* Options of the ByteLevel part in general; none of them changes decoding. */
        return tg_part_check(part, where, "type add_prefix_space trim_offsets use_regex", err);
    case TG_DECODER_WORDPIECE: return read_wordpiece(step, part, where, err);
    case TG_DECODER_BPE: return read_bpe(d, step, part, where, err);
    case TG_DECODER_METASPACE: return read_metaspace(step, part, where, err);
    case TG_DECODER_REPLACE: return read_replace(step, part, where, err);
    case TG_DECODER_STRIP: return read_strip(step, part, where, err);
    default: return tg_part_check(part, where, "type", err);
    }
}

/* ByteFallback and Fuse are not steps of their own: they say how tokens are joined. */
static tg_status place(tg_text_decoder *d, tg_decoder_kind kind, bool *fuse, const char *where,
                       tg_error *err) {
    bool whole = kind == TG_DECODER_REPLACE || kind == TG_DECODER_STRIP;
    bool late = (*fuse && !whole) || (!*fuse && d->byte_fallback && kind != TG_DECODER_FUSE);
    bool alone = kind == TG_DECODER_BYTE_LEVEL || kind == TG_DECODER_BPE;
    if (late || d->last_differs || (alone && d->n))
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: this order of steps is not built into this version", where);
    if (kind == TG_DECODER_BYTE_FALLBACK) d->byte_fallback = true;
    if (kind == TG_DECODER_FUSE) *fuse = true, d->fused = d->n;
    return TG_OK;
}

static tg_status read_part(tg_text_decoder *d, const json_t *part, const char *where, bool *fuse,
                           tg_error *err) {
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "%s.type: missing", where);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(type, kinds[i].type)) continue;
        if (d->n == TG_DECODER_MAX)
            return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d steps", where, TG_DECODER_MAX);
        tg_status st = place(d, kinds[i].kind, fuse, where, err);
        if (st != TG_OK) return st;
        d->step[d->n] = (tg_decoder_step){.kind = kinds[i].kind};
        tg_decoder_step *step = &d->step[d->n];
        bool is_step =
            kinds[i].kind != TG_DECODER_BYTE_FALLBACK && kinds[i].kind != TG_DECODER_FUSE;
        d->n += is_step; /* counted first, so that fini frees a half-read step */
        return read_step(d, step, part, where, err);
    }
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: type \"%.40s\" is not built into this version (ByteLevel, WordPiece, "
                   "BPEDecoder, Metaspace, Replace, Strip, ByteFallback, Fuse and Sequence are)",
                   where, type);
}

tg_status tg_text_decoder_read(tg_text_decoder *d, const json_t *part, tg_error *err) {
    *d = (tg_text_decoder){0};
    bool none = !part || json_is_null(part), fuse = false;
    d->json = none ? tg_strdup("null") : tg_part_dump(part);
    d->spaces = none;
    if (!d->json) return tg_fail_nomem(err, 0);
    if (none) return TG_OK;
    const char *type = tg_part_type(part);
    tg_status st = TG_OK;
    if (type && !strcmp(type, "Sequence")) {
        st = tg_part_check(part, "decoder", "type decoders", err);
        const json_t *list = json_object_get(part, "decoders");
        if (st == TG_OK && !json_is_array(list))
            st = tg_fail(err, TG_DATA, "decoder.decoders: expected a list");
        for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++) {
            char where[40];
            snprintf(where, sizeof where, "decoder.decoders[%zu]", i);
            st = read_part(d, json_array_get(list, i), where, &fuse, err);
        }
    } else {
        st = read_part(d, part, "decoder", &fuse, err);
    }
    if (!fuse) d->fused = d->n;
    return st;
}

void tg_text_decoder_fini(tg_text_decoder *d) {
    for (size_t i = 0; i < d->n; i++) {
        tg_free(d->step[i].from);
        tg_free(d->step[i].to);
    }
    tg_free(d->json);
    tg_free(d->byte);
    tg_free(d->first.offsets);
    tg_free(d->rest.offsets);
    tg_free(d->last.offsets);
    tg_buf_fini(&d->last.bytes);
    tg_buf_fini(&d->first.bytes);
    tg_buf_fini(&d->rest.bytes);
    *d = (tg_text_decoder){0};
}
