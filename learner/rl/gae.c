/* Advantages by one sweep from the last row to the first. The recursion runs in double; only
 * results are rounded to f32. */
#include "learner/rl/gae.h"

void tg_gae(float *adv, float *ret, const float *reward, const float *value,
            const unsigned char *start, int n, float last_value, bool last_done, double gamma,
            double lambda) {
    double next_value = (double)last_value, next_adv = 0;
    double alive = last_done ? 0 : 1; /* does the next row continue this row's episode? */
    for (int t = n - 1; t >= 0; t--) {
        double v = (double)value[t];
        double delta = (double)reward[t] + gamma * next_value * alive - v;
        double a = delta + gamma * lambda * alive * next_adv;
        adv[t] = (float)a;
        ret[t] = (float)(a + v);
        next_value = v;
        next_adv = a;
        alive = start[t] ? 0 : 1;
    }
}
