/* A complete reward plug-in: how close a completion comes to a wanted number of words.
 *
 *     cc -shared -fPIC -O2 -o example_reward.so example_reward.c
 *     textgen train config.yml reward_fn='{id: plugin, args: {path: ./example_reward.so, config: {words: 8}}}'
 *
 * The value is 1 for exactly that many words and falls by 1/words for each one too few or too many, never below 0. With
 * ranked: true the texts of a prompt are compared instead: the closest one gets 1, all others 0. */
#include "textgen_reward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct instance {
    double words; /* wanted */
};

/* A plug-in may use any JSON library; one number can be found by hand. */
static int read_words(const char *json, double *out) {
    const char *at = strstr(json, "\"words\"");
    if (!at) return 1; /* not given: the default stays */
    at = strchr(at, ':');
    char *end = NULL;
    double value = at ? strtod(at + 1, &end) : 0;
    if (!at || end == at + 1 || !(value >= 1 && value <= 1e6)) return 0;
    *out = value;
    return 1;
}

static void *create(const char *config_json, char *error, size_t error_size) {
    struct instance *self = calloc(1, sizeof *self);
    if (!self) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    self->words = 10;
    if (!read_words(config_json, &self->words)) {
        snprintf(error, error_size, "words: expected a number from 1 to 1000000");
        free(self);
        return NULL;
    }
    return self;
}

static void destroy(void *instance) {
    free(instance);
}

static double count_words(const char *text) {
    double n = 0;
    for (int inside = 0; *text; text++) {
        int space = strchr(" \t\r\n", *text) != NULL;
        n += !space && !inside;
        inside = !space;
    }
    return n;
}

static double closeness(const struct instance *self, const char *text) {
    double off = count_words(text) - self->words;
    double value = 1 - (off < 0 ? -off : off) / self->words;
    return value > 0 ? value : 0;
}

static int score(void *instance, const textgen_reward_item *const *items, size_t n, int ranked,
                 textgen_reward_result *const *results, char *error, size_t error_size) {
    const struct instance *self = instance;
    size_t best = 0;
    (void)error;
    (void)error_size; /* nothing here can fail as a whole */
    for (size_t i = 0; i < n; i++) {
        results[i]->value = closeness(self, items[i]->completion);
        if (results[i]->value > results[best]->value) best = i;
        results[i]->components[0] =
            (textgen_reward_component){"words", count_words(items[i]->completion)};
        results[i]->n_components = 1;
        results[i]->status = TEXTGEN_REWARD_OK;
    }
    for (size_t i = 0; ranked && i < n; i++) results[i]->value = i == best;
    return 0;
}

const textgen_reward_plugin_info *textgen_reward_plugin(void) {
    static const textgen_reward_plugin_info info = {
        .size = sizeof info,
        .abi = TEXTGEN_REWARD_ABI,
        .name = "word_count",
        .version = "1",
        .flags = TEXTGEN_REWARD_DETERMINISTIC | TEXTGEN_REWARD_THREAD_SAFE,
        .create = create,
        .score = score,
        .destroy = destroy,
    };
    return &info;
}
