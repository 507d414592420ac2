/* A part of the recordings of RL4LMs's own data pools (all of them: build/tests/replay-pools DIR). */
#include "tests/support/pool_replay.h"
#include "tests/support/tg_test.h"

TEST(recorded_pools_agree) {
    size_t passed = 0, failed = 0;
    CHECK_EQ(pool_replay(tg_test_path("golden/rl4lms-env"), tg_test_tmpdir(), &passed, &failed), 0);
    CHECK(passed >= 60);
    CHECK_EQ(failed, 0);
}

TEST_MAIN
