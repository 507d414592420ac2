/* Backends: names, memory accounting, allocation failures. The ops themselves are tested by tg-ops.
 */
#include "common/base/alloc.h"
#include "common/nn/backend.h"
#include "tests/support/tg_test.h"

static tg_error err;

TEST(list_has_complete_tables) {
    const struct tg_backend_ops *const *list = tg_backend_list();
    int n = 0;
    for (; list[n]; n++) {
        CHECK(list[n]->name[0] && list[n]->summary[0]);
        /* Every slot of the op table is a function pointer: none may be missing. */
        const tg_ops *ops = list[n]->ops;
        for (size_t i = 0; i < sizeof *ops / sizeof(void (*)(void)); i++) {
            void (*slot)(void);
            memcpy(&slot, (const char *)ops + i * sizeof slot, sizeof slot);
            tg_check(slot != NULL, __FILE__, __LINE__, "%s lacks op %zu", list[n]->name, i);
        }
    }
    CHECK(n >= 1);
}

TEST(unknown_name_is_a_config_error) {
    tg_backend *be;
    CHECK_EQ(tg_backend_open(&be, "reff", 1, &err), TG_CONFIG);
    CHECK(be == NULL);
    CHECK(strstr(err.msg, "did you mean \"ref\"") != NULL);
    CHECK_EQ(tg_backend_open(&be, "", 1, &err), TG_CONFIG);
}

TEST(memory_is_accounted) {
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++) {
        tg_backend *be;
        REQUIRE_OK(tg_backend_open(&be, (*b)->name, 2, &err));
        CHECK_EQ(be->bytes_used, 0);
        void *blocks[100];
        for (int i = 0; i < 100; i++) blocks[i] = tg_backend_alloc(be, (size_t)i * 4, &err);
        CHECK_EQ(be->bytes_used, 99 * 100 / 2 * 4);
        for (int i = 0; i < 100; i++) CHECK(blocks[i] && (uintptr_t)blocks[i] % 64 == 0);
        for (int i = 1; i < 100; i += 2) tg_backend_free(be, blocks[i]);
        CHECK_EQ(be->bytes_used, 49 * 50 * 4);
        tg_backend_free(be, NULL);
        CHECK_EQ(be->bytes_peak, 99 * 100 / 2 * 4);
        float in[5] = {1, 2, 3, 4, 5}, out[5] = {0};
        float *device = tg_backend_alloc(be, sizeof in, &err);
        tg_backend_upload(be, device, in, sizeof in);
        be->ops->scale(be, device, 2, 5);
        tg_backend_download(be, out, device, sizeof out);
        CHECK(out[0] == 2 && out[4] == 10);
        tg_backend_close(
            &be); /* frees the even blocks and the last one: LeakSanitizer would tell */
        CHECK(be == NULL);
        tg_backend_close(&be);
    }
}

TEST(a_block_may_rest) {
    static const size_t sizes[] = {1000, (8 << 20) / sizeof(float) + 5};
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++)
        for (int k = 0; k < 2; k++) {
            const size_t n = sizes[k];
            tg_backend *be;
            REQUIRE_OK(tg_backend_open(&be, (*b)->name, 2, &err));
            float *x = tg_backend_alloc(be, n * sizeof *x, &err), last = 1;
            REQUIRE(x);
            be->ops->fill(be, x, 3.0f, n);
            tg_backend_rest(be, x);
            tg_backend_download(be, &last, x + n - 1, sizeof last);
            CHECK(last == 0);
            float *y = tg_backend_alloc(be, n * sizeof *y, &err), *z;
            REQUIRE(y);
            be->ops->fill(be, y, 4.0f, n);
            REQUIRE_OK(tg_backend_wake(be, x, &err));
            be->ops->fill(be, x, 5.0f, n);
            tg_backend_download(be, &last, y + n - 1, sizeof last);
            CHECK(last == 4);
            tg_backend_free(be, y);
            REQUIRE((z = tg_backend_host_alloc(be, n, sizeof *z)) != NULL);
            for (size_t i = 0; i < n; i += 97) CHECK_EQ(z[i], 0);
            CHECK(tg_backend_host_alloc(be, SIZE_MAX / 2, 4) == NULL);
            tg_backend_host_free(be, z);
            tg_backend_host_free(be, NULL);
            tg_backend_free(be, x);
            CHECK_EQ(be->bytes_used, 0);
            tg_backend_close(&be);
        }
}

TEST(allocation_failures_are_reported) {
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++) {
        tg_backend *be = NULL;
        int failures = 0;
        for (int i = 0; i < 20; i++) {
            tg_alloc_fail_after(i);
            tg_status st = tg_backend_open(&be, (*b)->name, 2, &err);
            tg_alloc_fail_after(-1);
            if (st == TG_OK) break;
            CHECK_EQ(st, TG_NOMEM);
            CHECK(be == NULL);
            failures++;
        }
        REQUIRE(be != NULL);
        CHECK(failures >= 2);
        for (int i = 0; i < 2; i++) { /* the account's own array, then the block */
            tg_alloc_fail_after(i);
            CHECK(tg_backend_alloc(be, 1000, &err) == NULL);
            tg_alloc_fail_after(-1);
            CHECK_EQ(err.status, TG_NOMEM);
            CHECK(strstr(err.msg, "1000") != NULL);
            CHECK_EQ(be->bytes_used, 0);
        }
        tg_backend_close(&be);
    }
}

TEST_MAIN
