/* textgen keygen: key pairs for encrypted connections, and their lines in an allow-list. */
#ifndef TG_CLI_KEYGEN_H
#define TG_CLI_KEYGEN_H

int tg_cmd_keygen(int argc, char **argv);

#endif
