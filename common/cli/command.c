/* The table of commands and the dispatch over it. A row with a function runs here; a row with a binary is exec'ed with the same
 * arguments. */
#include "common/cli/command.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/str.h"
#include "common/cli/gentext.h"
#include "common/cli/health.h"
#include "common/cli/keygen.h"
#include "common/cli/process.h"
#include "common/cli/tokenizer.h"
#include "common/config/args.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    tg_command_fn *run;
    const char *binary;
    const char *summary;
} command;

#define ENV "textgen-env"
#define LEARNER "textgen-learner"

static const command commands[] = {
    {"train", tg_cmd_train, NULL, "Train a model: starts workers and a learner on this machine"},
    {"eval", tg_cmd_eval, NULL, "Metrics of a model on a config's data, without training"},
    {"check", tg_cmd_check, NULL, "Check configs; print the resolved config and the memory plan"},
    {"list", tg_cmd_list, NULL,
     "List rewards, metrics, data pools, algorithms … and their options"},
    {"generate", NULL, LEARNER, "Generate text from prompts"},
    {"logprob", NULL, LEARNER, "Log-probability and entropy of each given token"},
    {"classify", NULL, LEARNER, "Labels, numbers or vectors of texts by an encoder"},
    {"export", NULL, LEARNER, "Write a model, a run or a checkpoint as a folder to share"},
    {"score", NULL, ENV, "Score predictions with metrics and rewards"},
    {"data", NULL, ENV, "Show prompts as the environment will see them"},
    {"tokenize", tg_cmd_tokenize, NULL, "Text to token ids"},
    {"detokenize", tg_cmd_detokenize, NULL, "Token ids to text"},
    {"tokenizer", tg_cmd_tokenizer, NULL, "Train a tokenizer"},
    {"gentext", tg_cmd_gentext, NULL, "Make training text for a small model"},
    {"top", tg_cmd_top, NULL, "Watch workers, brokers and learners: slots, rates, lag"},
    {"health", tg_cmd_health, NULL, "Ask a running process whether it can do work"},
    {"keygen", tg_cmd_keygen, NULL, "Make keys for encrypted connections"},
    {"report", NULL, LEARNER, "Draw and compare the learning curves of runs"},
    {"bench", NULL, ENV, "Throughput and latency of an environment server"},
};

static void print_help(void) {
    printf("textgen fine-tunes language models with reinforcement learning.\n\n"
           "usage: textgen COMMAND [arguments] [--help]\n\ncommands:\n");
    for (size_t i = 0; i < TG_COUNT_OF(commands); i++)
        printf("  %-12s %s\n", commands[i].name, commands[i].summary);
    printf(
        "\nexamples:\n"
        "  textgen train configs/increasing_numbers.yml --workers 2\n"
        "  textgen train configs/increasing_numbers.yml alg.args.n_epochs=2 --run-dir runs/first\n"
        "  textgen check configs/increasing_numbers.yml\n"
        "  textgen list reward\n"
        "  textgen help train\n");
}

static int unknown_command(const char *name) {
    const char *names[TG_COUNT_OF(commands) + 1];
    size_t n = 0;
    for (; n < TG_COUNT_OF(commands); n++) names[n] = commands[n].name;
    names[n++] = "help";
    const char *near = tg_nearest(name, names, n);
    if (near)
        fprintf(stderr, "textgen: unknown command \"%s\", did you mean \"%s\"?\n", name, near);
    else
        fprintf(stderr, "textgen: unknown command \"%s\"; textgen --help lists them\n", name);
    return tg_status_exit_code(TG_USAGE);
}

/* Becomes the sibling program; returns only when that fails. */
static int exec_sibling(const command *c, int argc, char **argv) {
    tg_error err = {0};
    char *path;
    tg_status st = tg_sibling_path(c->binary, &path, &err);
    char **args = st == TG_OK ? tg_alloc_array((size_t)argc + 2, sizeof *args) : NULL;
    if (args) {
        args[0] = path;
        for (int i = 0; i < argc; i++) args[i + 1] = argv[i];
        execv(path, args);
        tg_fail_errno(&err, TG_UNAVAILABLE, "%s: cannot be started", path);
    } else if (st == TG_OK) {
        tg_fail_nomem(&err, (size_t)argc * sizeof *args);
    }
    tg_free(args);
    tg_free(path);
    return tg_args_report("textgen", &err);
}

static int dispatch(int argc, char **argv) {
    for (size_t i = 0; i < TG_COUNT_OF(commands); i++) {
        const command *c = &commands[i];
        if (strcmp(c->name, argv[0]) != 0) continue;
        return c->run ? c->run(argc, argv) : exec_sibling(c, argc, argv);
    }
    return unknown_command(argv[0]);
}

int tg_cli_run(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : NULL;
    if (!first) {
        fprintf(stderr, "textgen: a command is missing; textgen --help lists them\n");
        return tg_status_exit_code(TG_USAGE);
    }
    bool help = !strcmp(first, "help");
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || (help && argc == 2)) {
        print_help();
        return 0;
    }
    if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
        printf("textgen %s\n", TG_VERSION);
        return 0;
    }
    if (help) {
        char flag[] = "--help", *args[] = {argv[2], flag, NULL};
        return dispatch(2, args);
    }
    return dispatch(argc - 1, argv + 1);
}
