/* `textgen generate`: continue prompts with a model. */
#ifndef TG_LEARNER_CLI_GENERATE_H
#define TG_LEARNER_CLI_GENERATE_H

/* Returns the exit code. argv[0] is the command's name. */
int tg_cmd_generate(int argc, char **argv);

#endif
