/* `textgen report`: learning curves of one or several runs, on the terminal and as a page. */
#ifndef TG_LEARNER_CLI_REPORT_H
#define TG_LEARNER_CLI_REPORT_H

/* Returns the exit code. argv[0] is the command's name. */
int tg_cmd_report(int argc, char **argv);

#endif
