/* replay-pools: recordings of RL4LMs's own data pools against ours under `compat: rl4lms`.
 *
 *   replay-pools DIR [SCRATCH]     DIR holds pools.json; files are written below SCRATCH (a temporary
 *                                  folder when it is not given)
 *
 * Exit code 0 when all agree. */
#include "tests/support/pool_replay.h"
#include "tests/support/tg_test.h"

int main(int argc, char **argv) {
    size_t passed = 0, failed = 0;
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        fprintf(stderr, "usage: replay-pools DIR [SCRATCH]\n");
        return 64;
    }
    int code = pool_replay(argv[1], argc == 3 ? argv[2] : tg_test_tmpdir(), &passed, &failed);
    if (code != 66) printf("%zu passed, %zu failed\n", passed, failed);
    return code;
}
