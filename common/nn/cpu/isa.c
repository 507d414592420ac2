/* Which instruction set this machine has. The environment variable is for tests, and to get on one
 * machine the bits of another. */
#include "common/nn/cpu/kernels.h"

#include "common/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const tg_cpu_kernels tg_plain_kernels;
#if defined(__x86_64__)
extern const tg_cpu_kernels tg_avx2_kernels, tg_avx512_kernels, tg_avx512_bf16_kernels;

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static void warn_unknown(const char *wanted, const tg_cpu_kernels *const *found, int n) {
    char names[128];
    size_t len = 0;
    for (int i = 0; i < n && len < sizeof names; i++)
        len +=
            (size_t)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "", found[i]->isa);
    tg_log_warn("nn", "TEXTGEN_CPU_ISA is '%s', and this processor has %s: taking %s", wanted,
                names, found[0]->isa);
}

const tg_cpu_kernels *tg_cpu_kernels_choose(void) {
    const tg_cpu_kernels *found[4];
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (has_avx512() && __builtin_cpu_supports("avx512bf16")) found[n++] = &tg_avx512_bf16_kernels;
    if (has_avx512()) found[n++] = &tg_avx512_kernels;
    if (has_avx2()) found[n++] = &tg_avx2_kernels;
#endif
    found[n++] = &tg_plain_kernels;
    const char *wanted = getenv("TEXTGEN_CPU_ISA");
    for (int i = 0; wanted && i < n; i++)
        if (!strcmp(found[i]->isa, wanted)) return found[i];
    if (wanted && *wanted) warn_unknown(wanted, found, n);
    return found[0];
}
