/* Settings of generation: any text is read or refused with a message; what is read can be used on any small model, or is refused by name. */
#include "common/base/check.h"
#include "learner/policy/beam.h"
#include "learner/policy/sample.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { V = 11, LEN = 16, PROMPT = 3, BEAMS = 12 };

static void logits_of(float *row, const uint8_t *data, size_t size, int step) {
    for (int i = 0; i < V; i++)
        row[i] = (float)data[((size_t)step * V + (size_t)i) % size] / 16.0f - 8.0f;
}

static void use_sampler(const tg_gen_settings *s, const uint8_t *data, size_t size,
                        tg_gen_space *w) {
    int32_t tokens[LEN] = {1, 2, 3};
    for (int n = PROMPT; n < LEN; n++) {
        float row[V];
        logits_of(row, data, size, n);
        const tg_gen_context c = {tokens, n, PROMPT, LEN - PROMPT, tokens, PROMPT};
        tg_error err = {0};
        tg_draw d;
        if (tg_sample(s, &c, row, V, NULL, (double)n / LEN, w, &d, &err) != TG_OK) {
            TG_ASSERT(err.msg[0]);
            return;
        }
        TG_ASSERT(d.token >= 0 && d.token < V);
        tokens[n] = d.token;
        if (tg_gen_ends(s, tokens, n + 1, PROMPT, LEN - PROMPT) != TG_END_NONE) return;
    }
}

static void use_beams(const tg_gen_settings *s, const uint8_t *data, size_t size, tg_gen_space *w) {
    tg_error err = {0};
    tg_beams *b;
    if (tg_beams_create(&b, s, V, LEN, &err) != TG_OK) return;
    const int32_t prompt[PROMPT] = {1, 2, 3};
    const tg_beam_prompt p = {.tokens = prompt,
                              .n = PROMPT,
                              .max_new = LEN - PROMPT,
                              .source = prompt,
                              .n_source = PROMPT,
                              .domain = TG_RNG_TEST};
    tg_beams_start(b, &p);
    for (int step = 0; !tg_beams_done(b); step++) {
        float rows[BEAMS][V];
        const float *row[BEAMS];
        TG_ASSERT(step < LEN);
        for (int i = 0; i < (int)s->num_beams; i++) {
            logits_of(rows[i], data, size, step * BEAMS + i);
            row[i] = rows[i];
        }
        if (tg_beams_step(b, row, w, &err) != TG_OK) break;
        for (int i = 0; i < (int)s->num_beams; i++) {
            tg_beam beam = tg_beams_get(b, i);
            TG_ASSERT(!beam.live || (beam.parent >= 0 && beam.parent < s->num_beams));
        }
    }
    tg_beams_destroy(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *root = NULL;
    tg_gen_settings s;
    tg_status st = tg_tree_parse(&arena, "fuzz", (const char *)data, size, &root, &err);
    if (st == TG_OK) st = tg_gen_settings_read(&s, root, "kw", &arena, &err);
    if (st == TG_OK) st = tg_gen_settings_supported(&s, "kw", &err);
    TG_ASSERT(st == TG_OK || err.msg[0]);
    tg_gen_space w;
    if (st == TG_OK && size && s.num_beams <= BEAMS && tg_gen_space_init(&w, V, &err) == TG_OK) {
        if (s.num_beams > 1)
            use_beams(&s, data, size, &w);
        else
            use_sampler(&s, data, size, &w);
        tg_gen_space_fini(&w);
    }
    tg_arena_fini(&arena);
    return 0;
}
