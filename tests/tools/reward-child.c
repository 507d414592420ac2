/* A program for the reward `process` that does what its argument says: judges by length, or goes wrong in one of the ways
 * the tests need. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void answer(const json_t *request, const char *mode) {
    const json_t *items = json_object_get(request, "items");
    size_t n = json_array_size(items);
    json_t *results = json_array();
    if (!strcmp(mode, "short") && n) n--;
    if (!strcmp(mode, "long")) json_array_append_new(results, json_real(0));
    for (size_t i = 0; i < n; i++) {
        const char *text =
            json_string_value(json_object_get(json_array_get(items, i), "completion"));
        json_t *value = json_real((double)strlen(text ? text : ""));
        if (!strcmp(mode, "item") || (!strcmp(mode, "odd") && i % 2))
            json_array_append_new(results, json_pack("{s:s}", "error", "this text is ill"));
        else if (!strcmp(mode, "parts"))
            json_array_append_new(results,
                                  json_pack("{s:O, s:{s:O, s:f}}", "value", value, "components",
                                            "length", value, "pid", (double)getpid()));
        else if (!strcmp(mode, "null"))
            json_array_append_new(results, json_null());
        else
            json_array_append(results, value);
        json_decref(value);
    }
    json_int_t id = json_integer_value(json_object_get(request, "id"));
    json_t *reply =
        json_pack("{s:I, s:o}", "id", !strcmp(mode, "id") ? id + 1 : id, "results", results);
    json_dumpf(reply, stdout, JSON_COMPACT);
    puts("");
    fflush(stdout);
    json_decref(reply);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "ok";
    char *line = NULL;
    size_t cap = 0;
    int n = 0;
    if (!strcmp(mode, "leave")) return 3;
    while (getline(&line, &cap, stdin) > 0) {
        json_t *request = json_loads(line, 0, NULL);
        n++;
        fprintf(stderr, "request %d\n", n);
        if (!strcmp(mode, "never"))
            for (;;) pause();
        if (!strcmp(mode, "slow")) usleep(300000);
        if (!strcmp(mode, "die")) abort();
        if (!strcmp(mode, "die2") && n % 2 == 0) return 9;
        if (!strcmp(mode, "error"))
            puts("{\"id\": 0, \"error\": \"the judge is ill\"}"), fflush(stdout);
        else if (!strcmp(mode, "nan"))
            puts("{\"id\": 0, \"results\": [NaN]}"), fflush(stdout);
        else if (!strcmp(mode, "noise"))
            puts("Loading model ... done"), fflush(stdout);
        else if (!strcmp(mode, "two"))
            puts("{}\n{}"), fflush(stdout);
        else if (!strcmp(mode, "flood"))
            for (;;) fputs("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", stdout);
        else
            answer(request, mode);
        json_decref(request);
    }
    free(line);
    return 0;
}
