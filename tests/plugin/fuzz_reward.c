/* A plug-in whose every output is bytes of its config: what it reports cannot be trusted at all. */
#define _GNU_SOURCE
#include "textgen_reward.h"

#include <stdlib.h>
#include <string.h>

static const char *next(const char **at, const char *start) {
    if (!**at) *at = start;
    return **at ? (*at)++ : "x";
}

static void *create(const char *json, char *error, size_t size) {
    (void)error, (void)size;
    return strdup(json);
}

static void destroy(void *instance) {
    free(instance);
}

static int score(void *instance, const textgen_reward_item *const *items, size_t n, int ranked,
                 textgen_reward_result *const *results, char *error, size_t size) {
    const char *start = instance, *at = start;
    (void)items, (void)ranked;
    memset(error, *next(&at, start), size); /* no end */
    for (size_t i = 0; i < n; i++) {
        unsigned char *bytes = (unsigned char *)results[i];
        for (size_t k = 0; k < offsetof(textgen_reward_result, components); k++)
            bytes[k] = (unsigned char)*next(&at, start);
        results[i]->status = *next(&at, start) % 5;
        results[i]->n_components = (size_t)(unsigned char)*next(&at, start);
        for (int c = 0; c < TEXTGEN_REWARD_COMPONENTS; c++) {
            results[i]->components[c].name = *next(&at, start) % 3 ? "part" : NULL;
            memcpy(&results[i]->components[c].value, next(&at, start), 1);
        }
    }
    return *next(&at, start) % 8 == 0;
}

const textgen_reward_plugin_info *textgen_reward_plugin(void) {
    static const textgen_reward_plugin_info info = {
        sizeof info, TEXTGEN_REWARD_ABI, "fuzz", "1", 0, create, score, destroy};
    return &info;
}
