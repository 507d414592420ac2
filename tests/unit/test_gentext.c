/* The grammar behind `textgen gentext`: its promises about the mix, and that a line depends on nothing but its number. */
#include "common/cli/grammar.h"
#include "tests/support/tg_test.h"

#include <ctype.h>

enum { LINES = 20000 };

static bool has_iso_date(const char *s) {
    for (; *s; s++) {
        static const char form[] = "dddd-dd-dd";
        size_t i = 0;
        while (form[i] && (form[i] == 'd' ? isdigit((unsigned char)s[i]) != 0 : s[i] == form[i]))
            i++;
        if (!form[i]) return true;
    }
    return false;
}

static bool is_number_run(const char *s) {
    return s[strspn(s, "0123456789 ")] == 0;
}

/* Numbers that stand in strictly rising order. */
static bool rises(const char *s) {
    int previous = -1, value, used;
    for (; sscanf(s, "%d%n", &value, &used) == 1; s += used, previous = value)
        if (value <= previous) return false;
    return true;
}

TEST(mix_of_kinds) {
    int iso = 0, runs = 0, rising = 0, digits = 0;
    tg_buf text = {0};
    for (uint64_t i = 0; i < LINES; i++) {
        tg_buf_reset(&text);
        tg_grammar_text(1, i, &text);
        REQUIRE(!text.failed && text.len > 0);
        iso += has_iso_date(text.data);
        digits += strpbrk(text.data, "0123456789") != NULL;
        runs += is_number_run(text.data);
        rising += is_number_run(text.data) && rises(text.data);
    }
    tg_buf_fini(&text);
    CHECK_NEAR(iso / (double)LINES, 0.10, 0.01);
    CHECK_NEAR(runs / (double)LINES, 0.33, 0.02);
    CHECK_NEAR(rising / (double)runs, 0.14, 0.02); /* 1 in 8 on purpose, short ones by chance */
    CHECK_NEAR(digits / (double)LINES, 0.70, 0.05);
}

TEST(texts_are_well_formed) {
    tg_buf text = {0};
    for (uint64_t i = 0; i < LINES; i++) {
        tg_buf_reset(&text);
        tg_grammar_text(2, i, &text);
        const char *s = text.data;
        char last = s[text.len - 1];
        bool ok =
            !strpbrk(s, "{}|\n") && !strstr(s, "  ") && !strstr(s, " a a") && !strstr(s, " an b");
        ok = ok && (is_number_run(s) || last == '.' || last == '"');
        ok = ok && !islower((unsigned char)s[0]) && last != ' ';
        if (!tg_check(ok, __FILE__, __LINE__, "line %d: %s", (int)i, s)) break;
    }
    tg_buf_fini(&text);
}

TEST(a_line_depends_on_seed_and_number_alone) {
    tg_buf a = {0}, b = {0}, c = {0};
    tg_grammar_text(7, 41, &a);
    for (uint64_t i = 0; i < 3; i++) {
        tg_buf_reset(&b);
        tg_grammar_text(7, 41, &b);
    }
    CHECK_STR(a.data, b.data);
    tg_grammar_text(8, 41, &c);
    CHECK(strcmp(a.data, c.data));
    tg_buf_fini(&a);
    tg_buf_fini(&b);
    tg_buf_fini(&c);
}

TEST_MAIN
