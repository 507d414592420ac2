/* The metric ter: tercom's tokeniser, the statistics of a sample, the corpus. After open a state is
 * read-only. */
#include "common/base/alloc.h"
#include "common/text/unicode.h"
#include "env-server/metric/items.h"
#include "env-server/metric/pystr.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/ter.h"
#include "env-server/reward/pytext.h"

#include <string.h>

#define S tg_ter_options
const tg_opt tg_ter_table[] = {
    TG_OPT_BOOL(S, normalized, "false", "Put spaces around punctuation, resolve XML escapes."),
    TG_OPT_BOOL(S, no_punct, "false", "Drop punctuation."),
    TG_OPT_BOOL(S, asian_support, "false", "Both also for Chinese and Japanese characters."),
    TG_OPT_BOOL(S, case_sensitive, "false", "Case counts."), TG_OPT_END};
#undef S

#define IN(table, c) tg_unicode_in_ranges(table, sizeof table / sizeof *table / 2, c)

static bool is_asian_point(uint32_t c) {
    static const uint32_t ranges[] = {
        0x3001, 0x3002, 0x3008, 0x3011, 0x3014, 0x301F, 0x30FB, 0x30FB, 0xFF01, 0xFF02, 0xFF08,
        0xFF09, 0xFF0C, 0xFF0C, 0xFF0E, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF1F, 0xFF61, 0xFF65};
    return IN(ranges, c);
}

/* Ideographs and their like stand alone. (The original's rules for Hiragana and Katakana ask for the
 * start of the text, where a space stands, and never apply.) */
static bool is_asian(uint32_t c) {
    static const uint32_t ranges[] = {0x2E80, 0x2EFF, 0x31C0, 0x31EF, 0x3200, 0x4DBF,
                                      0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0xFE30, 0xFE4F};
    return IN(ranges, c) || is_asian_point(c);
}

static void normalize(tg_bleu_text *t, bool asian) {
    tg_bleu_text_replace(t, "\n-", "");
    tg_bleu_text_replace(t, "\n", " ");
    tg_bleu_text_replace(t, "&quot;", "\"");
    tg_bleu_text_replace(t, "&amp;", "&");
    tg_bleu_text_replace(t, "&lt;", "<");
    tg_bleu_text_replace(t, "&gt;", ">");
    tg_bleu_text_symbols(t);
    tg_bleu_text_replace(t, "'s ", " 's ");
    tg_bleu_text_points(t);
    if (asian) tg_bleu_text_isolate(t, is_asian);
}

/* Without the characters that count as punctuation. */
static void drop_points(tg_buf *b, bool asian) {
    size_t n, to = 0;
    for (size_t i = 0; i < b->len; i += n) {
        uint32_t c = tg_py_char(b->data + i, b->len - i, &n);
        if ((c && c < 0x80 && strchr(".,?:;!\"()", (int)c)) || (asian && is_asian_point(c)))
            continue;
        memmove(b->data + to, b->data + i, n);
        to += n;
    }
    b->len = to;
}

/* b->now gets the text with its words between white space. */
static bool cut(tg_bleu_text *b, const tg_ter_options *o, const char *text, size_t len) {
    tg_buf_reset(&b->now);
    len = tg_bleu_text_rstrip(text, len);
    if (!len) return true;
    if (o->normalized) tg_buf_putc(&b->now, ' ');
    if (o->case_sensitive)
        tg_buf_append(&b->now, text, len);
    else
        tg_py_lower(&b->now, text, len);
    if (o->normalized) {
        tg_buf_putc(&b->now, ' ');
        normalize(b, o->asian_support);
    }
    if (b->now.failed || b->next.failed) return false;
    if (o->no_punct) drop_points(&b->now, o->asian_support);
    return true;
}

/* b->lower gets ' '.join(now.split()). */
static bool join_words(tg_bleu_text *b) {
    size_t n;
    const char *word;
    tg_buf_reset(&b->lower);
    for (tg_py_walk walk = tg_py_words(b->now.data, b->now.len); tg_py_next(&walk, &word, &n);) {
        if (b->lower.len) tg_buf_putc(&b->lower, ' ');
        tg_buf_append(&b->lower, word, n);
    }
    return !b->lower.failed;
}

bool tg_ter_words(tg_ter *t, const tg_ter_options *o, const char *text, size_t len, bool reference,
                  tg_wids *out) {
    tg_bleu_text *b = &t->text;
    tg_wids_reset(out);
    if (!cut(b, o, text, len)) return false;
    /* sacrebleu tokenises references twice, which splits "'s" off before any kind of space. */
    if (reference && o->normalized && (!join_words(b) || !cut(b, o, b->lower.data, b->lower.len)))
        return false;
    tg_words_split(&t->words, b->now.data, b->now.len, out);
    return !t->words.failed && !out->failed;
}

tg_status tg_ter_count(tg_ter *t, const tg_ter_options *o, const char *text, size_t len,
                       const tg_sample *sample, tg_ter_stats *out, tg_error *err) {
    uint64_t best = UINT64_MAX, edits, length = 0;
    tg_words_reset(&t->words);
    for (size_t i = 0; i < sample->n_references; i++) {
        const char *ref = sample->references[i];
        /* The search changes the hypothesis, so it is read again for every reference. */
        if (!tg_ter_words(t, o, text, len, false, &t->hyp) ||
            !tg_ter_words(t, o, ref, strlen(ref), true, &t->ref) || !tg_ter_edits(t, &edits))
            return tg_fail_nomem(err, len);
        if (edits < best) best = edits;
        length += t->ref.n;
    }
    *out = (tg_ter_stats){(double)best, (double)length / (double)sample->n_references};
    return TG_OK;
}

double tg_ter_score(const tg_ter_stats *s, bool compat) {
    if (s->ref_length > 0) return 100 * (s->edits / s->ref_length) / 100;
    return s->edits > 0 || compat ? 1 : 0;
}

struct state {
    tg_ter_options options;
    bool compat;
};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)err;
    struct state *s = state;
    s->options = *(const tg_ter_options *)opts;
    s->compat = ctx->compat;
    return TG_OK;
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    return tg_ter_count(work, &((const struct state *)state)->options, item->text, item->text_len,
                        item->sample, out, err);
}

static void end(void *work) {
    tg_ter_fini(work);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_ter), sizeof(tg_ter_stats), NULL, one, end};
    const struct state *s = state;
    tg_status st = tg_items_need_references(in, err);
    if (st == TG_OK && s->compat) st = tg_items_need_equal(in, err);
    if (st != TG_OK) return st;
    tg_ter_stats *each = tg_alloc_array(in->n, sizeof *each), sum = {0};
    double *samples = tg_alloc_array(in->n, sizeof *samples);
    st = each && samples ? tg_items_run(in, &loop, state, each, err)
                         : tg_fail_nomem(err, in->n * sizeof *each);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        samples[i] = tg_ter_score(&each[i], s->compat);
        sum.edits += each[i].edits, sum.ref_length += each[i].ref_length;
    }
    if (st == TG_OK)
        st = tg_metric_emit(out, "lexical/ter", tg_ter_score(&sum, s->compat),
                            s->compat ? NULL : samples, in->n, err);
    tg_free(each);
    tg_free(samples);
    return st;
}

const tg_metric_ops tg_metric_ter = {
    .entry = {.name = "ter",
              .summary = "Translation edit rate.",
              .options = tg_ter_table,
              .options_size = sizeof(tg_ter_options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .compute = compute,
};
