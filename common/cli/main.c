/* textgen: the front door. */
#include "common/cli/command.h"
#include "common/config/args.h"

int main(int argc, char **argv) {
    tg_args_begin();
    return tg_args_end("textgen", tg_cli_run(argc, argv));
}
