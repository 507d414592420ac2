/* The commands of textgen-env. Each takes its own arguments (argv[0] is its name) and returns an exit
 * code; results go to stdout, everything else to stderr. */
#ifndef TG_ENV_COMMANDS_H
#define TG_ENV_COMMANDS_H

int tg_command_serve(int argc, char **argv);
int tg_command_check(int argc, char **argv);
int tg_command_list(int argc, char **argv);
int tg_command_data(int argc, char **argv);
int tg_command_score(int argc, char **argv);
int tg_command_bench(int argc, char **argv);

#endif
