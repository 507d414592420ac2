/* The commands of textgen-learner. Each returns the exit code; argv[0] is the command's name. */
#ifndef TG_LEARNER_CLI_COMMANDS_H
#define TG_LEARNER_CLI_COMMANDS_H

/* Resolved alg and train_evaluation as JSON on stdout, the memory plan on stderr. */
int tg_learner_check(int argc, char **argv);
/* The learner's registries as a JSON array. */
int tg_learner_list(int argc, char **argv);
/* Trains. `die` ends the process at once (a second signal, or a parent that is gone). */
int tg_learner_train(int argc, char **argv, void (*die)(int exit_code));
/* Evaluates without training; likewise. */
int tg_learner_eval(int argc, char **argv, void (*die)(int exit_code));

#endif
