/* replay-updates DIR [--backend cpu|ref] [--case NAME] [--models FOLDER]: replays recorded training
 * iterations (tests/support/replay.h). */
#include "tests/support/replay.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: replay-updates DIR [--backend cpu|ref] [--case NAME] [--models FOLDER]\n"
    "  DIR      a folder of case folders, or one case (recording.json, initial and final weights)\n"
    "  --models where the model folders named by the cases are, when not beside them\n";

int main(int argc, char **argv) {
    tg_replay_opts opts = {.backend = "cpu", .out = stdout};
    const char *dir = NULL;
    for (int i = 1; i < argc; i++) {
        const char **value = !strcmp(argv[i], "--backend")  ? &opts.backend
                             : !strcmp(argv[i], "--case")   ? &opts.only
                             : !strcmp(argv[i], "--models") ? &opts.models
                                                            : NULL;
        if (value && i + 1 < argc)
            *value = argv[++i];
        else if (!value && argv[i][0] != '-' && !dir)
            dir = argv[i];
        else
            return fputs(usage, stderr), 64;
    }
    if (!dir) return fputs(usage, stderr), 64;
    tg_replay_result result;
    tg_error err = {0};
    tg_status st = tg_replay(dir, &opts, &result, &err);
    if (st != TG_OK) {
        fprintf(stderr, "replay-updates: %s\n", err.msg);
        return tg_status_exit_code(st);
    }
    printf("%d cases, %d skipped\n%d passed, %d failed\n", result.cases, result.skipped,
           result.passed, result.failed);
    return result.failed ? 1 : 0;
}
