#include "common/base/str.h"

#include "common/base/check.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool tg_parse_i64(const char *text, int64_t *out) {
    if (!*text || isspace((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || *end) return false;
    *out = v;
    return true;
}

bool tg_parse_f64(const char *text, double *out) {
    if (!*text || isspace((unsigned char)*text)) return false;
    char *end;
    double v = strtod(text, &end);
    if (*end || end == text) return false;
    *out = v;
    return true;
}

bool tg_str_starts(const char *text, const char *prefix) {
    return !strncmp(text, prefix, strlen(prefix));
}

bool tg_str_ends(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && !strcmp(text + n - m, suffix);
}

enum { EDIT_MAX = 64 };

int tg_edit_distance(const char *a, const char *b, int limit) {
    size_t n = strlen(a), m = strlen(b);
    if (n > EDIT_MAX || m > EDIT_MAX) return limit + 1;
    int rows[3][EDIT_MAX + 1]; /* the last two rows and the current one */
    for (size_t j = 0; j <= m; j++) rows[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *cur = rows[i % 3], *prev = rows[(i - 1) % 3], *prev2 = rows[(i + 1) % 3];
        cur[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = prev[j - 1] + (a[i - 1] != b[j - 1]);
            best = TG_MIN(best, TG_MIN(prev[j], cur[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = TG_MIN(best, prev2[j - 2] + 1);
            cur[j] = best;
        }
    }
    return TG_MIN(rows[n % 3][m], limit + 1);
}

const char *tg_nearest(const char *wanted, const char *const *names, size_t n) {
    int limit = strlen(wanted) <= 4 ? 1 : strlen(wanted) <= 8 ? 2 : 3, best = limit + 1;
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        int d = tg_edit_distance(wanted, names[i], limit);
        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    if (best <= limit) return found;
    for (size_t i = 0; strlen(wanted) >= 3 && i < n; i++) {
        if (strstr(names[i], wanted) || (strlen(names[i]) >= 3 && strstr(wanted, names[i])))
            return names[i];
    }
    return NULL;
}
