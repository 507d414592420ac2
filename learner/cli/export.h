/* textgen export: a model, a run or a checkpoint as a Hugging Face folder; summaries. */
#ifndef TG_LEARNER_CLI_EXPORT_H
#define TG_LEARNER_CLI_EXPORT_H

int tg_cmd_export(int argc, char **argv);

#endif
