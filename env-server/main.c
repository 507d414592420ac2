/* textgen-env: an environment worker, and the commands that look at what it is made of. */
#include "common/base/lost_file.h"
#include "common/config/args.h"
#include "env-server/cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void die(int exit_code) {
    _exit(exit_code);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"serve", tg_command_serve}, {"check", tg_command_check},
                {"list", tg_command_list},   {"data", tg_command_data},
                {"score", tg_command_score}, {"bench", tg_command_bench}};

static int run(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        printf("textgen-env %s\n", TG_VERSION);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    return tg_command_serve(argc, argv);
}

int main(int argc, char **argv) {
    tg_lost_file_watch(die);
    tg_args_begin();
    return tg_args_end("textgen-env", run(argc, argv));
}
