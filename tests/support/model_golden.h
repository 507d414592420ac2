/* A recorded model folder (tests/oracle/gen_gpt2.py, gen_families.py) against what this build computes with it. */
#ifndef TG_TESTS_MODEL_GOLDEN_H
#define TG_TESTS_MODEL_GOLDEN_H

/* On every backend: logits, log-probabilities, entropies, values, the loss and every gradient, by training and scoring passes; a decoder,
 * prompt and steps, against the pass. forward_tol is absolute, grad_tol relative to a tensor's largest gradient. */
void tg_golden_check(const char *folder, double forward_tol, double grad_tol);

#endif
