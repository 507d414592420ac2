/* textgen classify: labels, numbers or vectors of texts by an encoder. */
#ifndef TG_LEARNER_CLI_CLASSIFY_H
#define TG_LEARNER_CLI_CLASSIFY_H

int tg_cmd_classify(int argc, char **argv);

#endif
