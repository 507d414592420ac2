/* `textgen logprob`: log-probability and entropy of every token of given sequences. */
#ifndef TG_LEARNER_CLI_LOGPROB_H
#define TG_LEARNER_CLI_LOGPROB_H

/* Returns the exit code. argv[0] is the command's name. */
int tg_cmd_logprob(int argc, char **argv);

#endif
