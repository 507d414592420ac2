/* A plug-in that does what its config says, for tests of what may go wrong: {"mode": "nan"} and so on. */
#define _GNU_SOURCE
#include "textgen_reward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct instance {
    char mode[32];
};

static void *create(const char *json, char *error, size_t size) {
    struct instance *self = calloc(1, sizeof *self);
    const char *at = strstr(json, "\"mode\"");
    at = at ? strchr(at + 6, '"') : NULL;
    if (self && at)
        snprintf(self->mode, sizeof self->mode, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
    if (self && strcmp(self->mode, "refuse")) return self;
    snprintf(error, size, "it does not want to");
    free(self);
    return NULL;
}

static void destroy(void *instance) {
    free(instance);
}

static int score(void *instance, const textgen_reward_item *const *items, size_t n, int ranked,
                 textgen_reward_result *const *results, char *error, size_t size) {
    const char *mode = ((struct instance *)instance)->mode;
    (void)ranked;
    if (!strcmp(mode, "error")) {
        snprintf(error, size, "the judge is ill");
        return 5;
    }
    if (!strcmp(mode, "sleep")) usleep(400000);
    if (!strcmp(mode, "hang") && getenv("BAD_REWARD_HANGS"))
        for (;;) pause(); /* some workers of a fleet, with the same config */
    for (size_t i = 0; i < n; i++) {
        textgen_reward_result *r = results[i];
        if (!strcmp(mode, "short") && i + 1 == n) break; /* the last one stays without a result */
        r->status = TEXTGEN_REWARD_OK;
        r->value = (double)strlen(items[i]->completion);
        if (!strcmp(mode, "nan")) r->value = (double)NAN;
        if (!strcmp(mode, "inf")) r->value = (double)INFINITY;
        if (!strcmp(mode, "status")) r->status = 99;
        if (!strcmp(mode, "item")) {
            r->status = TEXTGEN_REWARD_FAILED;
            snprintf(r->message, sizeof r->message, "this text is ill");
        }
        if (!strcmp(mode, "components")) r->n_components = 1000;
        if (!strcmp(mode, "noname")) r->n_components = 1;
        if (!strcmp(mode, "endless")) memset(r->message, 'x', sizeof r->message);
    }
    return 0;
}

const textgen_reward_plugin_info *textgen_reward_plugin(void) {
    static const textgen_reward_plugin_info info = {
        sizeof info, TEXTGEN_REWARD_ABI, "bad", "1", 0, create, score, destroy};
    return &info;
}
