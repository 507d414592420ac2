/* textgen: the front door. */
#include "common/cli/tokenizer.h"

#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
} command;

static const command commands[] = {
    {"tokenize", "Text to token ids.", tg_cmd_tokenize},
    {"detokenize", "Token ids to text.", tg_cmd_detokenize},
    {"tokenizer", "Train a tokenizer.", tg_cmd_tokenizer},
};

static int usage(int code) {
    FILE *out = code ? stderr : stdout;
    fprintf(out, "usage: textgen COMMAND [options]\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    return code;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("textgen %s\n", TG_VERSION);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    return usage(argc == 2 && !strcmp(argv[1], "--help") ? 0 : 64);
}
