/* Rewards outside this program, opened from a line of YAML, and what is expected of them. */
#ifndef TG_TEST_EXTERNAL_CASE_H
#define TG_TEST_EXTERNAL_CASE_H

#include "env-server/reward/external.h"
#include "tests/support/http_judge.h"

/* The folder of everything built: a test is BUILD/tests/unit/test_…. */
const char *external_built(void);
tg_status external_open_yaml(tg_reward *r, const char *yaml, tg_error *err);
tg_status external_open(tg_reward *r, tg_error *err, const char *fmt, ...) TG_PRINTF(3, 4);
tg_status external_open_plugin(tg_reward *r, const char *library, const char *args, tg_error *err);
tg_status external_open_process(tg_reward *r, const char *mode, const char *args, tg_error *err);
tg_status external_open_http(tg_reward *r, const http_judge *j, const char *args, tg_error *err);

extern const tg_sample external_plain;
tg_reward_input external_input(const tg_sample *sample, const char *text);
/* Only errors are logged from now on. */
void external_quiet(void);
/* One text has this status, no number, and a reason with these words. */
void external_expect(const tg_reward *r, const char *what, tg_reward_status status,
                     const char *reason);
/* The reward of a text is its length. */
void external_expect_lengths(const tg_reward *r);

#endif
