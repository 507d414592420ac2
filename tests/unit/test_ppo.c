/* The PPO loss: its derivatives against finite differences, and every branch of the clipping by
 * hand. No model. */
#include "tests/support/tg_test.h"

#include "common/base/rng.h"
#include "learner/rl/loss.h"

#include <stdint.h>

enum { N = 64 };

typedef struct problem {
    float logp_old[N], value_old[N], adv[N], ret[N], logp[N], entropy[N], value[N];
    tg_loss_coefs c;
} problem;

static void random_problem(problem *p, uint64_t seed) {
    tg_rng r = tg_rng_at(seed, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < N; i++) {
        p->logp_old[i] = (float)(-3 + tg_rng_normal(&r));
        p->logp[i] = p->logp_old[i] + (float)(0.3 * tg_rng_normal(&r));
        p->entropy[i] = (float)(2 + tg_rng_uniform(&r));
        p->value_old[i] = (float)tg_rng_normal(&r);
        p->value[i] = p->value_old[i] + (float)(0.3 * tg_rng_normal(&r));
        p->ret[i] = (float)tg_rng_normal(&r);
        p->adv[i] = (float)tg_rng_normal(&r);
    }
    p->c = (tg_loss_coefs){
        .clip_range = 0.2, .clip_range_vf = (double)NAN, .ent_coef = 0.03, .vf_coef = 0.5};
}

static tg_loss_rows rows_of(const problem *p, int from) {
    return (tg_loss_rows){p->logp_old + from, p->value_old + from, p->adv + from,  p->ret + from,
                          p->logp + from,     p->entropy + from,   p->value + from};
}

/* Loss by the book, in double: what the derivatives are checked against. */
static double loss_at(const problem *p, const double *logp, const double *entropy,
                      const double *value) {
    double sum = 0;
    for (int i = 0; i < N; i++) {
        double ratio = exp(logp[i] - (double)p->logp_old[i]), a = (double)p->adv[i];
        double clipped = fmin(fmax(ratio, 1 - p->c.clip_range), 1 + p->c.clip_range);
        double v = value[i], old = (double)p->value_old[i];
        if (!isnan(p->c.clip_range_vf))
            v = old + fmin(fmax(v - old, -p->c.clip_range_vf), p->c.clip_range_vf);
        double miss = (double)p->ret[i] - v;
        sum +=
            -fmin(ratio * a, clipped * a) + p->c.vf_coef * miss * miss - p->c.ent_coef * entropy[i];
    }
    return sum / N;
}

static void check_gradients(problem *p) {
    float g[3][N];
    tg_loss_terms t = {.finite = true};
    tg_loss_rows rows = rows_of(p, 0);
    tg_ppo_loss(&p->c, &rows, N, N, &t, g[0], g[1], g[2]);
    double x[3][N];
    for (int i = 0; i < N; i++) {
        x[0][i] = (double)p->logp[i];
        x[1][i] = (double)p->entropy[i];
        x[2][i] = (double)p->value[i];
    }
    CHECK(t.finite);
    CHECK_NEAR(tg_loss_total(&p->c, &t), loss_at(p, x[0], x[1], x[2]), 1e-12);
    const double h = 1e-6;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++) {
            double at = x[k][i];
            x[k][i] = at + h;
            double up = loss_at(p, x[0], x[1], x[2]);
            x[k][i] = at - h;
            double down = loss_at(p, x[0], x[1], x[2]);
            x[k][i] = at;
            CHECK_NEAR(g[k][i], (up - down) / (2 * h), 1e-7);
        }
}

TEST(a2c_gradients_match_finite_differences) {
    problem p;
    random_problem(&p, 5);
    float g[3][N];
    tg_loss_terms t = {.finite = true};
    tg_loss_rows rows = rows_of(&p, 0);
    tg_a2c_loss(&p.c, &rows, N, N, &t, g[0], g[1], g[2]);
    double policy = 0, value = 0, entropy = 0;
    for (int i = 0; i < N; i++) {
        /* -A logp + c (R - v)^2 - e H is linear in logp and H, and quadratic in v: differences are exact. */
        double miss = (double)p.value[i] - (double)p.ret[i], h = 1e-3;
        policy -= (double)p.adv[i] * (double)p.logp[i] / N;
        value += miss * miss / N;
        entropy -= (double)p.entropy[i] / N;
        CHECK_NEAR(g[0][i], -(double)p.adv[i] / N, 1e-9);
        CHECK_NEAR(g[1][i], -p.c.ent_coef / N, 1e-9);
        CHECK_NEAR(g[2][i],
                   p.c.vf_coef * ((miss + h) * (miss + h) - (miss - h) * (miss - h)) / (2 * h * N),
                   1e-8);
    }
    CHECK_NEAR(tg_loss_total(&p.c, &t), policy + p.c.vf_coef * value + p.c.ent_coef * entropy,
               1e-12);
}

TEST(gradients_match_finite_differences) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        problem p;
        random_problem(&p, seed);
        check_gradients(&p);
        p.c.clip_range_vf = 0.2;
        p.c.clip_range = 0.05;
        p.c.vf_coef = 1.7;
        check_gradients(&p);
    }
}

TEST(clipping_ends_the_gradient_only_where_the_objective_is_clipped) {
    const double ln = 0.5; /* |ratio - 1| is far outside the clip range */
    const struct {
        double log_ratio, adv, surrogate, slope;
    } cases[] = {
        {ln, 1, 1.2, 0},              /* too likely, still rewarded: clipped */
        {ln, -1, -exp(ln), -exp(ln)}, /* too likely and bad: pushed back */
        {-ln, 1, exp(-ln), exp(-ln)}, /* too unlikely and good: pushed back */
        {-ln, -1, -0.8, 0},           /* too unlikely, still punished: clipped */
        {0, 2, 2, 2},
        {0.1, -2, -2 * exp(0.1), -2 * exp(0.1)},
        {ln, 0, 0, 0},
    };
    tg_loss_coefs c = {.clip_range = 0.2, .clip_range_vf = (double)NAN, .vf_coef = 0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float old = -2, logp = (float)(-2 + cases[i].log_ratio), adv = (float)cases[i].adv,
              zero = 0, g[3];
        tg_loss_terms t = {.finite = true};
        tg_ppo_loss(&c, &(tg_loss_rows){&old, &zero, &adv, &zero, &logp, &zero, &zero}, 1, 1, &t, g,
                    g + 1, g + 2);
        CHECK_NEAR(t.policy_loss, -cases[i].surrogate, 1e-6);
        CHECK_NEAR(g[0], -cases[i].slope, 1e-6);
        CHECK_EQ(t.clip_fraction, fabs(cases[i].log_ratio) > 0.2);
        CHECK_NEAR(t.approx_kl, expm1(cases[i].log_ratio) - cases[i].log_ratio, 1e-6);
    }
}

TEST(a_clipped_value_has_no_gradient_even_when_the_clipped_loss_is_smaller) {
    tg_loss_coefs c = {.clip_range = 0.2, .clip_range_vf = 0.1, .vf_coef = 1};
    float zero = 0, old = 1, value = 3, ret = 3, g[3];
    tg_loss_terms t = {.finite = true};
    tg_ppo_loss(&c, &(tg_loss_rows){&zero, &old, &zero, &ret, &zero, &zero, &value}, 1, 1, &t, g,
                g + 1, g + 2);
    CHECK_NEAR(t.value_loss, 1.9 * 1.9, 1e-6); /* no maximum with the unclipped loss, which is 0 */
    CHECK_EQ(g[2], 0);
}

TEST(pieces_of_a_minibatch_add_up) {
    problem p;
    random_problem(&p, 7);
    p.c.clip_range_vf = 0.1;
    float whole[3][N], parts[3][N];
    tg_loss_terms a = {.finite = true}, b = {.finite = true};
    tg_loss_rows rows = rows_of(&p, 0);
    tg_ppo_loss(&p.c, &rows, N, N, &a, whole[0], whole[1], whole[2]);
    for (int at = 0, n = 1; at < N; at += n, n = 2 * n + 1) {
        if (at + n > N) n = N - at;
        rows = rows_of(&p, at);
        tg_ppo_loss(&p.c, &rows, n, N, &b, parts[0] + at, parts[1] + at, parts[2] + at);
    }
    CHECK(!memcmp(whole, parts, sizeof whole));
    CHECK_NEAR(tg_loss_total(&p.c, &a), tg_loss_total(&p.c, &b), 1e-14);
    CHECK_NEAR(a.clip_fraction, b.clip_fraction, 1e-14);
    CHECK(a.clip_fraction > 0.1 && a.clip_fraction < 0.9 && a.ratio_error == b.ratio_error);
}

TEST(what_is_not_finite_is_seen) {
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int field = 0; field < 4; field++)
        for (int k = 0; k < 3; k++) {
            problem p;
            random_problem(&p, 3);
            float *at[] = {&p.logp[5], &p.entropy[5], &p.value[5], &p.adv[5]};
            *at[field] = bad[k];
            float g[3][N];
            tg_loss_terms t = {.finite = true};
            tg_loss_rows rows = rows_of(&p, 0);
            tg_ppo_loss(&p.c, &rows, N, N, &t, g[0], g[1], g[2]);
            CHECK(!t.finite);
        }
}

TEST(advantages_are_normalised_with_the_unbiased_deviation) {
    float a[] = {1, 2, 3, 4}, out[4], one = 5;
    tg_normalise_advantages(out, a, 4);
    CHECK_NEAR(out[0], -1.5 / sqrt(5.0 / 3), 1e-6);
    CHECK_NEAR(out[3], 1.5 / sqrt(5.0 / 3), 1e-6);
    tg_normalise_advantages(&one, &one, 1);
    CHECK_EQ(one, 5);
    float same[] = {0.1F, 0.1F, 0.1F};
    tg_normalise_advantages(same, same, 3);
    CHECK_EQ(same[0], 0);
}

TEST(explained_variance) {
    float ret[] = {1, 2, 3, 4}, good[] = {1, 2, 3, 4}, shifted[] = {2, 3, 4, 5},
          flat[] = {7, 7, 7, 7};
    CHECK_NEAR(tg_explained_variance(good, ret, 4), 1, 1e-12);
    CHECK_NEAR(tg_explained_variance(shifted, ret, 4), 1, 1e-12);
    CHECK_NEAR(tg_explained_variance(flat, ret, 4), 0, 1e-12);
    CHECK(isnan(tg_explained_variance(ret, flat, 4)));
}

TEST_MAIN
