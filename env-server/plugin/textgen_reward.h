/* Reward functions as C plug-ins: a shared library that textgen loads. This header is all a plug-in needs; it includes
 * nothing of textgen and may be copied into any project.
 *
 *     cc -shared -fPIC -o my_reward.so my_reward.c
 *
 *     reward_fn:
 *       id: plugin
 *       args: {path: ./my_reward.so, config: {bonus: 0.5}}
 *
 * The library exports one function, textgen_reward_plugin(), which returns a description of the reward function. Every
 * struct starts with its size and is passed by pointer, so that later versions can add members at the end: a reader
 * looks only at what is there. example_reward.c beside this file is a complete plug-in. */
#ifndef TEXTGEN_REWARD_H
#define TEXTGEN_REWARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a plug-in built for another number could not work; textgen then refuses it by name. */
#define TEXTGEN_REWARD_ABI 1u

/* A text to judge. Strings are UTF-8, end with a NUL byte, are never NULL, and are valid during the call only. */
typedef struct textgen_reward_item {
    size_t size; /* of this struct */
    const char *prompt;
    const char *completion;        /* what the policy wrote, so far */
    const char *const *references; /* n_references of them */
    size_t n_references;
    const char *meta_json; /* what the data says besides, as JSON; "" for nothing */
    uint32_t n_tokens;     /* of the completion; 0: not known */
    int done;              /* 1: the completion is finished */
} textgen_reward_item;

/* A named part of a value, for the logs. */
typedef struct textgen_reward_component {
    const char *name; /* must live until the next call of this instance, or for ever */
    double value;
} textgen_reward_component;

/* What became of a text. Set status last: TEXTGEN_REWARD_OK with a finite value, or TEXTGEN_REWARD_FAILED with a
 * message. What is left untouched has no value. */
enum { TEXTGEN_REWARD_NONE = 0, TEXTGEN_REWARD_OK = 1, TEXTGEN_REWARD_FAILED = 3 };
enum { TEXTGEN_REWARD_COMPONENTS = 16, TEXTGEN_REWARD_MESSAGE = 256 };
typedef struct textgen_reward_result {
    size_t size; /* of this struct, set by textgen */
    int status;
    double value;
    char message[TEXTGEN_REWARD_MESSAGE]; /* why there is no value; "" else */
    textgen_reward_component components[TEXTGEN_REWARD_COMPONENTS];
    size_t n_components;
} textgen_reward_result;

/* How the function behaves: flags of a description. */
enum {
    TEXTGEN_REWARD_DETERMINISTIC =
        1, /* the same text always gets the same value: results may be remembered */
    TEXTGEN_REWARD_PER_TOKEN =
        2, /* asked at every token; else once, when the completion is finished */
    TEXTGEN_REWARD_THREAD_SAFE =
        4 /* score() may run on several threads at a time for one instance */
};

typedef struct textgen_reward_plugin_info {
    size_t size;         /* sizeof(textgen_reward_plugin_info) */
    uint32_t abi;        /* TEXTGEN_REWARD_ABI */
    const char *name;    /* for logs */
    const char *version; /* of the function: change it when values change */
    uint32_t flags;

    /* Makes an instance from `config`, a JSON object ("{}" when none was given). On failure: returns NULL and writes
     * why into error. */
    void *(*create)(const char *config_json, char *error, size_t error_size);
    /* Judges n texts at once and fills all results; ranked: they are samples of one prompt, to be judged together.
     * Returns 0, or something else with a reason in error: then none of the results counts. Never exits or throws. */
    int (*score)(void *instance, const textgen_reward_item *const *items, size_t n, int ranked,
                 textgen_reward_result *const *results, char *error, size_t error_size);
    void (*destroy)(void *instance);
} textgen_reward_plugin_info;

/* The one exported symbol: a description that lives as long as the library. */
const textgen_reward_plugin_info *textgen_reward_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
