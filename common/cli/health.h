/* textgen health and textgen top: looking at running processes through their operations port. */
#ifndef TG_CLI_HEALTH_H
#define TG_CLI_HEALTH_H

int tg_cmd_health(int argc, char **argv);
int tg_cmd_top(int argc, char **argv);

#endif
