/* rl-eval: one JSON request a line on stdin, one answer a line on stdout (tests/support/rl_eval.h).
 */
#include "tests/support/rl_eval.h"

#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *line = NULL;
    size_t cap = 0;
    int bad = 0;
    while (getline(&line, &cap, stdin) > 0) {
        tg_error err = {0};
        json_t *request = json_loads(line, 0, NULL), *answer = NULL;
        if (tg_rl_eval(request, &answer, &err) != TG_OK) {
            answer = json_pack("{s:s}", "error", err.msg);
            bad = 1;
        }
        json_dumpf(answer, stdout, JSON_REAL_PRECISION(17));
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(request);
    }
    free(line);
    return bad ? 65 : 0;
}
