/* textgen gentext: training text for small models, made by the grammar of grammar.h. */
#ifndef TG_CLI_GENTEXT_H
#define TG_CLI_GENTEXT_H

int tg_cmd_gentext(int argc, char **argv);

#endif
