/* Items are scored PIECE at a time: their texts, each once, go through the model together; then every text is matched with its references. */
#include "env-server/judge/bert_score.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "env-server/judge/bert_score_models.h"
#include "env-server/metric/pystr.h"

#include <math.h>
#include <string.h>

enum { PIECE = 32, LANES = 16 };

#define O tg_bert_score_options
const tg_opt tg_bert_score_table[] = {
    TG_OPT_STR(O, language, "en", "Language, which decides the model."),
    TG_OPT_STR(O, model_name, NULL,
               "Another encoder, as a folder or a name; unset: the language's."),
    TG_OPT_INT_OR_NULL(O, num_layers, 1, 1024,
                       "Layers of it to run; unset: as bert-score has it for that model."),
    TG_OPT_BOOL(
        O, add_prefix_space, "true",
        "RoBERTa reads a text behind a space, as bert-score asks (transformers 5 does not)."),
    TG_OPT_END};
#undef O

tg_status tg_bert_score_open(tg_bert_score *b, const tg_open_context *ctx,
                             const tg_bert_score_options *o, tg_error *err) {
    *b = (tg_bert_score){0};
    const char *model_name =
        o->model_name ? o->model_name : tg_bert_score_model(o->language ? o->language : "en");
    const bool asked = o->num_layers != INT64_MIN;
    int n_layers = asked ? (int)o->num_layers : tg_bert_score_layers(model_name);
    if (!n_layers)
        return tg_fail(err, TG_CONFIG,
                       "bert_score: num_layers: bert-score has no layer for \"%.120s\"; give the "
                       "number of layers to run",
                       model_name);
    const tg_judge_spec spec = {"bert_score", model_name, TG_JUDGE_STATES, n_layers, !asked};
    tg_status st = tg_judge_open(&b->judge, ctx, spec, err);
    if (st != TG_OK) return st;
    if (n_layers > tg_judge_arch(b->judge)->n_layers)
        tg_log_warn("bert_score",
                    "%s has %d layers, bert-score takes the states of layer %d of %s: "
                    "the last one's are taken",
                    tg_judge_folder(b->judge), tg_judge_arch(b->judge)->n_layers, n_layers,
                    model_name);
    b->space_first = o->add_prefix_space && !strcmp(tg_judge_arch(b->judge)->family, "roberta");
    st = tg_tokenizer_encode(tg_judge_tokenizer(b->judge), "", 0, TG_ENCODE_SPECIAL, &b->special,
                             err);
    if (st != TG_OK) tg_bert_score_close(b);
    return st;
}

void tg_bert_score_close(tg_bert_score *b) {
    tg_judge_close(&b->judge);
    tg_ids_fini(&b->special);
}

/* ---- the texts of a piece ---------------------------------------------------------------------- */

/* Texts by what they are, in the order in which they came. */
typedef struct piece {
    const tg_bert_score *b;
    tg_map places; /* text -> its row */
    tg_text *texts;
    size_t texts_cap;
    tg_buf line;
    tg_encodings rows;
    float *states; /* (tokens, width), each row of length 1 */
    size_t states_cap;
} piece;

static void piece_fini(piece *p) {
    tg_map_fini(&p->places);
    tg_free(p->texts);
    tg_buf_fini(&p->line);
    tg_encodings_fini(&p->rows);
    tg_free(p->states);
}

/* The row of a text, as bert-score reads it: stripped, behind a space where words begin with one. */
static tg_status place_of(piece *p, const char *text, size_t len, uint64_t *row, tg_error *err) {
    const char *bare = tg_py_strip(text, &len);
    tg_buf_reset(&p->line);
    if (p->b->space_first && len) tg_buf_putc(&p->line, ' ');
    tg_buf_append(&p->line, bare, len);
    if (p->line.failed) return tg_fail_nomem(err, len);
    const char *key = p->line.data ? p->line.data : "";
    if (tg_map_get(&p->places, key, p->line.len, row)) return TG_OK;
    *row = p->places.count;
    return tg_map_set(&p->places, key, p->line.len, *row) ? TG_OK : tg_fail_nomem(err, len);
}

static tg_status read_texts(piece *p, const tg_metric_item *items, size_t n, tg_error *err) {
    tg_status st = TG_OK;
    uint64_t row;
    tg_map_fini(&p->places);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        const tg_sample *s = items[i].sample;
        if (!s || !s->n_references)
            return tg_fail(err, TG_DATA, "bert_score: sample \"%s\" has no reference",
                           s ? s->id : "");
        st = place_of(p, items[i].text, items[i].text_len, &row, err);
        for (size_t k = 0; k < s->n_references && st == TG_OK; k++)
            st = place_of(p, s->references[k], strlen(s->references[k]), &row, err);
    }
    return st;
}

static void normalize(float *x, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    for (size_t k = 0; k < n; k++) x[k] = (float)((double)x[k] / sqrt(sum));
}

static tg_status run_texts(piece *p, tg_error *err) {
    const size_t n = p->places.count, width = (size_t)tg_judge_arch(p->b->judge)->width;
    if (n > p->texts_cap) {
        tg_text *texts = tg_realloc_array(p->texts, 2 * n, sizeof *texts);
        if (!texts) return tg_fail_nomem(err, 2 * n * sizeof *texts);
        p->texts = texts, p->texts_cap = 2 * n;
    }
    for (size_t i = 0; i < n; i++)
        p->texts[i] = (tg_text){.s = p->places.entries[i].key, .len = p->places.entries[i].key_len};
    tg_status st = tg_judge_encode(p->b->judge, p->texts, n, false, &p->rows, err);
    if (st != TG_OK) return st;
    const size_t floats = p->rows.start[n] * width;
    if (floats > p->states_cap) {
        tg_free(p->states);
        p->states = tg_alloc_array(floats, sizeof *p->states);
        p->states_cap = p->states ? floats : 0;
        if (!p->states) return tg_fail_nomem(err, floats * sizeof *p->states);
    }
    st = tg_judge_states(p->b->judge, &p->rows, p->states, err);
    for (size_t t = 0; t < p->rows.start[n] && st == TG_OK; t++)
        normalize(p->states + t * width, width);
    return st;
}

/* ---- matching ---------------------------------------------------------------------------------- */

/* In lanes, so that the sum has one order on every machine. */
static float dot(const float *a, const float *b, size_t n) {
    float lanes[LANES] = {0}, sum = 0;
    size_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (size_t l = 0; l < LANES; l++) lanes[l] += a[k + l] * b[k + l];
    for (; k < n; k++) sum += a[k] * b[k];
    for (size_t l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

static bool is_special(const tg_bert_score *b, int32_t id) {
    for (size_t i = 0; i < b->special.n; i++)
        if (b->special.data[i] == id) return true;
    return false;
}

/* Mean over the words of row a of the cosine with the nearest token of row b; special tokens are none, but may be the nearest. NaN: no words. */
static double matched(const piece *p, uint64_t a, uint64_t b) {
    const size_t width = (size_t)tg_judge_arch(p->b->judge)->width, *start = p->rows.start;
    double sum = 0;
    size_t words = 0;
    for (size_t i = start[a]; i < start[a + 1]; i++) {
        if (is_special(p->b, p->rows.ids[i])) continue;
        float best = -2;
        for (size_t k = start[b]; k < start[b + 1]; k++) {
            float c = dot(p->states + i * width, p->states + k * width, width);
            best = c > best ? c : best;
        }
        sum += (double)best;
        words++;
    }
    return words ? sum / (double)words : (double)NAN;
}

static bool is_empty(const piece *p, uint64_t row) {
    return p->rows.start[row + 1] - p->rows.start[row] == p->b->special.n;
}

static tg_bert_score_value compare(const piece *p, uint64_t text, uint64_t reference) {
    double precision = matched(p, text, reference), recall = matched(p, reference, text);
    double f1 = 2 * precision * recall / (precision + recall);
    if (is_empty(p, text) || is_empty(p, reference)) precision = recall = 0;
    if (isnan(f1)) f1 = 0;
    return (tg_bert_score_value){isnan(precision) ? 0 : (float)precision,
                                 isnan(recall) ? 0 : (float)recall, (float)f1};
}

static tg_status score_item(piece *p, const tg_metric_item *item, tg_bert_score_value *out,
                            tg_error *err) {
    uint64_t text, reference;
    tg_status st = place_of(p, item->text, item->text_len, &text, err);
    for (size_t k = 0; k < item->sample->n_references && st == TG_OK; k++) {
        const char *s = item->sample->references[k];
        st = place_of(p, s, strlen(s), &reference, err);
        if (st != TG_OK) break;
        tg_bert_score_value v = compare(p, text, reference);
        if (!k) *out = v;
        out->precision = TG_MAX(out->precision, v.precision);
        out->recall = TG_MAX(out->recall, v.recall);
        out->f1 = TG_MAX(out->f1, v.f1);
    }
    return st;
}

tg_status tg_bert_score_values(const tg_bert_score *b, const tg_metric_item *items, size_t n,
                               tg_bert_score_value *values, tg_error *err) {
    piece p = {.b = b};
    tg_status st = TG_OK;
    for (size_t at = 0; at < n && st == TG_OK; at += PIECE) {
        size_t end = TG_MIN(n, at + PIECE);
        st = read_texts(&p, items + at, end - at, err);
        if (st == TG_OK) st = run_texts(&p, err);
        for (size_t i = at; i < end && st == TG_OK; i++)
            st = score_item(&p, &items[i], &values[i], err);
    }
    piece_fini(&p);
    return st;
}
