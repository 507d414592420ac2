/* Copies of texts and results, and content keys. A key hashes lengths with the strings, so that no two lists of strings
 * read the same. */
#include "env-server/reward/score_text.h"

#include "common/base/buf.h"
#include "common/base/hash.h"

#include <string.h>

static const char *copy_text(tg_arena *arena, const char *text, size_t len) {
    size_t zeros = 0;
    for (size_t i = 0; i < len; i++) zeros += !text[i];
    char *copy = tg_arena_alloc(arena, len + 2 * zeros + 1), *to = copy;
    if (!copy) return NULL;
    for (size_t i = 0; i < len; i++) {
        if (text[i])
            *to++ = text[i];
        else
            memcpy(to, "\xEF\xBF\xBD", 3), to += 3;
    }
    *to = 0;
    return copy;
}

static const char *copy_string(tg_arena *arena, const char *text) {
    return tg_arena_strdup(arena, text ? text : "");
}

tg_status tg_score_text_copy(tg_score_text *out, const tg_reward_input *in, tg_arena *arena,
                             tg_error *err) {
    const tg_sample *s = in->sample;
    *out = (tg_score_text){.n_tokens = (uint32_t)in->n_tokens, .done = in->done};
    tg_score_item *item = &out->item;
    const char **references = tg_arena_array(arena, s->n_references + 1, sizeof *references);
    item->prompt = copy_string(arena, s->prompt_text);
    item->meta_json = copy_string(arena, s->meta_json);
    item->completion = copy_text(arena, in->text ? in->text : "", in->text ? in->text_len : 0);
    bool ok = references && item->prompt && item->meta_json && item->completion;
    for (size_t i = 0; ok && i < s->n_references; i++)
        ok = (references[i] = copy_string(arena, s->references[i])) != NULL;
    item->references = references, item->n_references = s->n_references;
    return ok ? TG_OK : tg_fail_nomem(err, in->text_len);
}

static void add_string(tg_buf *b, const char *text) {
    uint64_t len = strlen(text);
    tg_buf_append(b, &len, sizeof len);
    tg_buf_append(b, text, len);
}

bool tg_score_key(const char *identity, const tg_score_text *texts, size_t n, uint64_t key[2]) {
    static const uint64_t first = 0x74657874, second = 0x73636f7265;
    tg_buf b = {0};
    add_string(&b, identity);
    for (size_t i = 0; i < n; i++) {
        const tg_score_item *item = &texts[i].item;
        uint64_t numbers[] = {texts[i].done, texts[i].n_tokens, item->n_references};
        tg_buf_append(&b, numbers, sizeof numbers);
        add_string(&b, item->prompt);
        add_string(&b, item->completion);
        add_string(&b, item->meta_json);
        for (size_t k = 0; k < item->n_references; k++) add_string(&b, item->references[k]);
    }
    bool ok = !b.failed;
    if (ok) {
        key[0] = tg_siphash(first, second, b.data, b.len);
        key[1] = tg_siphash(second, key[0], b.data, b.len);
    }
    tg_buf_fini(&b);
    return ok;
}

bool tg_score_results_copy(tg_score_result *to, const tg_score_result *from, size_t n,
                           tg_arena *arena) {
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].message = copy_string(arena, from[i].message);
        tg_component *parts =
            tg_arena_array(arena, from[i].n_components + 1, sizeof *from[i].components);
        if (!to[i].message || !parts) return false;
        for (size_t k = 0; k < from[i].n_components; k++) {
            parts[k] = from[i].components[k];
            if (!(parts[k].name = copy_string(arena, parts[k].name))) return false;
        }
        to[i].components = parts;
    }
    return true;
}
