/* Truncation. Pure functions. */
#include "common/text/encode_row.h"

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

tg_token_range tg_cut_part(const tg_cut *cut, size_t part) {
    size_t n = cut->tokens->ids.n, start = 0, end = n;
    if (cut->parts > 1 && !cut->keep) { /* nothing is kept: all of it is cut off */
        if (!part) end = 0;
    } else if (cut->parts > 1 && cut->left) {
        end = n - part * cut->step;
        start = end > cut->keep ? end - cut->keep : 0;
    } else if (cut->parts > 1) {
        start = part * cut->step;
        end = min_size(start + cut->keep, n);
    }
    return (tg_token_range){cut->tokens, start, end, part > 0};
}

static tg_status cut_to(tg_cut *cut, const tg_encode_options *o, size_t keep, tg_error *err) {
    size_t n = cut->tokens->ids.n, stride = (size_t)o->stride;
    if (keep >= n) return TG_OK;
    if (keep && stride >= keep)
        return tg_fail(err, TG_CONFIG,
                       "stride %zu: a text is cut to %zu tokens; the stride must be smaller",
                       stride, keep);
    cut->keep = keep;
    cut->step = keep - (keep ? stride : 0);
    cut->parts = keep ? 1 + (n - keep + cut->step - 1) / cut->step : 2;
    return TG_OK;
}

/* The shorter text keeps its length as long as it can; then both share. */
static void share(size_t max, size_t *a, size_t *b) {
    size_t n1 = min_size(*a, *b), n2;
    bool swapped = *a > *b;
    n2 = n1 > max ? n1 : max_size(n1, max - n1);
    if (n1 + n2 > max) n1 = max / 2, n2 = n1 + max % 2;
    *a = swapped ? n2 : n1;
    *b = swapped ? n1 : n2;
}

static tg_status cut_one(const tg_encode_options *o, tg_cut *cut, const char *which, size_t remove,
                         tg_error *err) {
    if (cut->tokens->ids.n <= remove)
        return tg_fail(
            err, TG_DATA,
            "the %s text has %zu tokens, of which %zu would have to go: raise max_length "
            "or cut longest_first",
            which, cut->tokens->ids.n, remove);
    return cut_to(cut, o, cut->tokens->ids.n - remove, err);
}

tg_status tg_cut_texts(const tg_encode_options *o, size_t special_tokens, const tg_tokens *first,
                       const tg_tokens *pair, tg_cut cut[2], tg_error *err) {
    cut[0] = (tg_cut){.tokens = first, .parts = 1, .left = o->truncate_left};
    cut[1] = (tg_cut){.tokens = pair ? pair : first, .parts = 1, .left = o->truncate_left};
    size_t room = o->special ? special_tokens : 0;
    /* Hugging Face's arithmetic wraps around here: no limit is left. */
    if (!o->truncate || (uint64_t)o->max_length < room) return TG_OK;
    size_t max = (size_t)o->max_length - room;
    size_t a = first->ids.n, b = pair ? pair->ids.n : 0;
    if (a + b <= max) return TG_OK;
    size_t remove = a + b - max;
    if (max && o->strategy == TG_TRUNCATE_ONLY_FIRST)
        return cut_one(o, &cut[0], "first", remove, err);
    if (max && o->strategy == TG_TRUNCATE_ONLY_SECOND) {
        if (!pair)
            return tg_fail(err, TG_DATA,
                           "only_second: the row has more than %lld tokens, and no "
                           "second text",
                           (long long)o->max_length);
        return cut_one(o, &cut[1], "second", remove, err);
    }
    if (!max)
        a = b = 0;
    else if (pair)
        share(max, &a, &b);
    else
        a = max;
    tg_status st = cut_to(&cut[0], o, a, err);
    return st == TG_OK && pair ? cut_to(&cut[1], o, b, err) : st;
}
