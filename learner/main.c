/* textgen-learner: generates rollouts, trains, and everything else that needs a model. */
#include "learner/cli/commands.h"
#include "learner/cli/classify.h"
#include "learner/cli/export.h"
#include "learner/cli/generate.h"
#include "learner/cli/logprob.h"
#include "learner/cli/report.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/lost_file.h"
#include "common/base/str.h"
#include "common/config/args.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void die(int exit_code) {
    _exit(exit_code);
}

static int cmd_train(int argc, char **argv) {
    return tg_learner_train(argc, argv, die);
}

static int cmd_eval(int argc, char **argv) {
    return tg_learner_eval(argc, argv, die);
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"train", cmd_train, "Train with the workers that connect"},
    {"eval", cmd_eval, "Metrics of a model, without training"},
    {"check", tg_learner_check, "Resolved settings and memory plan of a config"},
    {"list", tg_learner_list, "Algorithms, policies, optimizers … with their options"},
    {"generate", tg_cmd_generate, "Continue prompts with a model"},
    {"logprob", tg_cmd_logprob, "Log-probability and entropy of given tokens"},
    {"classify", tg_cmd_classify, "Labels or vectors of texts by an encoder"},
    {"export", tg_cmd_export, "Write a model, a run or a checkpoint as a Hugging Face folder"},
    {"report", tg_cmd_report, "Learning curves of runs"},
};

static void print_help(void) {
    printf("textgen-learner is the training side of textgen (see: textgen --help).\n\n"
           "usage: textgen-learner COMMAND [options] [--help]\n\ncommands:\n");
    for (size_t i = 0; i < TG_COUNT_OF(commands); i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\nexamples:\n"
           "  textgen-learner check --config configs/increasing_numbers.yml\n"
           "  textgen-learner train --config configs/increasing_numbers.yml --run-dir runs/a "
           "--bind ipc:///tmp/pool\n");
}

static int unknown(const char *name) {
    const char *names[TG_COUNT_OF(commands)];
    for (size_t i = 0; i < TG_COUNT_OF(commands); i++) names[i] = commands[i].name;
    const char *near = tg_nearest(name, names, TG_COUNT_OF(commands));
    fprintf(stderr, "textgen-learner: unknown command \"%s\"; %s%s\n", name,
            near ? "did you mean " : "try --help", near ? near : "");
    return 64;
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr,
                "textgen-learner: a command is missing; textgen-learner --help lists them\n");
        return 64;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_help();
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("textgen-learner %s\n", TG_VERSION);
        return 0;
    }
    for (size_t i = 0; i < TG_COUNT_OF(commands); i++)
        if (!strcmp(commands[i].name, argv[1])) return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}

int main(int argc, char **argv) {
    tg_alloc_give_back();
    tg_lost_file_watch(die);
    tg_args_begin();
    return tg_args_end("textgen-learner", run(argc, argv));
}
