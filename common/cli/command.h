/* The commands of `textgen`, and who runs each: this program, or a sibling binary (git style).
 *
 * A new command of our own is one function tg_cmd_<name> in common/cli/<name>.c, its line below, and one row in command.c. */
#ifndef TG_CLI_COMMAND_H
#define TG_CLI_COMMAND_H

/* argv[0] is the command's name; returns the exit code. */
typedef int tg_command_fn(int argc, char **argv);

tg_command_fn tg_cmd_train;
tg_command_fn tg_cmd_eval;
tg_command_fn tg_cmd_check;
tg_command_fn tg_cmd_list;

/* The whole program: argv as main got it. */
int tg_cli_run(int argc, char **argv);

#endif
