/* textgen: the front door. */
#include "common/cli/command.h"

int main(int argc, char **argv) {
    return tg_cli_run(argc, argv);
}
