/* Objects by number against a plain table, and without memory. */
#include "common/base/alloc.h"
#include "common/base/by_id.h"
#include "common/base/rng.h"
#include "tests/support/tg_test.h"

typedef struct thing {
    uint32_t id;
    int mark;
} thing;

TEST(as_a_table_of_all_numbers_would_have_it) {
    enum { IDS = 200 };
    static thing all[IDS];
    bool there[IDS] = {0};
    tg_by_id a = {0};
    tg_rng r = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    for (uint32_t i = 0; i < IDS; i++) all[i] = (thing){.id = i * 21474836u, .mark = (int)i};
    for (int round = 0; round < 5000; round++) {
        uint32_t i = (uint32_t)tg_rng_below(&r, IDS);
        CHECK(tg_by_id_find(&a, all[i].id) == (there[i] ? &all[i] : NULL));
        if (there[i])
            CHECK(tg_by_id_remove(&a, all[i].id) == &all[i]);
        else
            CHECK(tg_by_id_add(&a, &all[i]));
        there[i] = !there[i];
        if (round % 100) continue;
        size_t n = 0;
        for (uint32_t k = 0; k < IDS; k++)
            if (there[k]) CHECK(tg_by_id_at(&a, n++) == &all[k]);
        CHECK_EQ(a.n, n);
    }
    CHECK(tg_by_id_remove(&a, 12345) == NULL);
    tg_by_id_fini(&a);
    CHECK_EQ(a.n, 0);
}

TEST(without_memory_it_stays_as_it_was) {
    thing t[5] = {{.id = 5}, {.id = 3}, {.id = 9}, {.id = 1}, {.id = 7}};
    tg_by_id a = {0};
    for (int i = 0; i < 4; i++) CHECK(tg_by_id_add(&a, &t[i]));
    tg_alloc_fail_after(0);
    CHECK(!tg_by_id_add(&a, &t[4]));
    tg_alloc_fail_after(-1);
    CHECK_EQ(a.n, 4);
    CHECK(tg_by_id_find(&a, 7) == NULL && tg_by_id_find(&a, 9) == &t[2]);
    CHECK(tg_by_id_add(&a, &t[4]));
    CHECK(tg_by_id_at(&a, 3) == &t[4]);
    tg_by_id_fini(&a);
}

TEST_MAIN
