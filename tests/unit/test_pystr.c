/* Python's view of characters: lower(), isupper(), \w and repr() of lists. */
#include "common/base/alloc.h"
#include "env-server/metric/pyrepr.h"
#include "env-server/metric/pystr.h"
#include "tests/support/tg_test.h"

static const char *lower(const char *text) {
    static tg_buf b;
    tg_buf_reset(&b);
    tg_py_lower(&b, text, strlen(text));
    tg_buf_putc(&b, 0);
    return b.data;
}

TEST(lower_is_pythons) {
    CHECK_STR(lower("ABC xyz"), "abc xyz");
    CHECK_STR(lower(""), "");
    CHECK_STR(lower("ÄÖÜ ÉÈ ŁŚ ЖЯ"), "äöü éè łś жя");
    CHECK_STR(lower("İ"), "i\xCC\x87");
    CHECK_STR(lower("\xE2\x84\xAA"), "k"); /* Kelvin sign */
    CHECK_STR(lower("ΟΔΟΣ"), "οδος");      /* final sigma */
    CHECK_STR(lower("ΣΑΣ ΣΑΣ."), "σας σας.");
    CHECK_STR(lower("Σ"), "σ");
    CHECK_STR(lower("ΑΣ.Α"), "ασ.α"); /* the dot is passed over: a letter follows */
    CHECK_STR(lower("A\xFFZ"), "a\xFFz");
}

TEST(classes_are_pythons) {
    CHECK(tg_py_isword('_') && tg_py_isword('z') && tg_py_isword('0') && tg_py_isword(0xE9));
    CHECK(tg_py_isword(0xBD) && tg_py_isword(0x4E2D) && tg_py_isword(0x2167));
    CHECK(!tg_py_isword('-') && !tg_py_isword(0x2019) && !tg_py_isword(0x301));
    CHECK(tg_py_isupper('Q') && tg_py_isupper(0xC9) && tg_py_isupper(0x2160));
    CHECK(!tg_py_isupper('q') && !tg_py_isupper(0x1C5) && !tg_py_isupper('1'));
    CHECK(tg_py_islower(0xDF) && tg_py_islower(0xAA) && !tg_py_islower(0x1C5));
}

static const char *repr(const char *const *texts, size_t n) {
    static tg_buf b;
    tg_buf_reset(&b);
    tg_py_repr_list(&b, texts, n);
    tg_buf_putc(&b, 0);
    return b.data;
}

TEST(lists_are_rendered_as_python_does) {
    CHECK_STR(repr(NULL, 0), "[]");
    CHECK_STR(repr((const char *[]){"A boy runs.", "it's"}, 2), "['A boy runs.', \"it's\"]");
    CHECK_STR(repr((const char *[]){"both ' and \"", "\\\n\t\r"}, 2),
              "['both \\' and \"', '\\\\\\n\\t\\r']");
    CHECK_STR(repr((const char *[]){"\x01\x7F", "\xC2\xA0\xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80"}, 2),
              "['\\x01\\x7f', '\\xa0é\\u2028😀']");
}

/* The text is whole, or said to have failed. */
TEST(memory_may_run_out) {
    bool whole = false;
    for (int64_t k = 0; k < 8 && !whole; k++) {
        tg_buf b = {0};
        tg_alloc_fail_after(k);
        tg_py_lower(&b, "ABCÄ", 5);
        tg_py_repr_list(&b, (const char *[]){"a\n"}, 1);
        tg_alloc_fail_after(-1);
        whole = !b.failed;
        CHECK(k > 0 || b.failed);
        if (whole) CHECK_STR(b.data, "abcä['a\\n']");
        tg_buf_fini(&b);
    }
    CHECK(whole);
}
TEST_MAIN
