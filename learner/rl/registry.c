/* The list of algorithms: adding one is its file and a line here. */
#include "learner/rl/algo.h"

#include "common/base/check.h"
#include "common/base/str.h"
#include "learner/rl/a2c.h"
#include "learner/rl/nlpo.h"
#include "learner/rl/ppo.h"
#include "learner/rl/trpo.h"

#include <string.h>

const tg_algo_ops *const *tg_algo_list(void) {
    static const tg_algo_ops *const all[] = {
        &tg_algo_ppo, &tg_algo_nlpo, &tg_algo_a2c, &tg_algo_trpo, NULL,
    };
    return all;
}

tg_status tg_algo_find(const char *name, const tg_algo_ops **out, tg_error *err) {
    const char *names[16];
    size_t n = 0;
    *out = NULL;
    for (const tg_algo_ops *const *a = tg_algo_list(); *a; a++) {
        if (n < TG_COUNT_OF(names)) names[n++] = (*a)->name;
        if (strcmp((*a)->name, name) != 0) continue;
        *out = *a;
        return TG_OK;
    }
    const char *near = tg_nearest(name, names, n);
    return tg_fail(err, TG_CONFIG,
                   "unknown algorithm \"%s\"%s%s%s: ppo, nlpo, a2c, trpo and supervised are known",
                   name, near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "");
}
