/* Commands about tokenizers. argv[0] is the command's name; each returns the exit code. */
#ifndef TG_CLI_TOKENIZER_H
#define TG_CLI_TOKENIZER_H

#include "common/config/args.h"
#include "common/text/tokenizer.h"

#include <stdio.h>

int tg_cmd_tokenize(int argc, char **argv);
int tg_cmd_detokenize(int argc, char **argv);
int tg_cmd_tokenizer(int argc, char **argv);

/* A path is opened as it is, anything else is a model's name. NULL: TG_USAGE. */
tg_status tg_cli_open_tokenizer(const char *name, tg_tokenizer **out, tg_error *err) TG_MUST_CHECK;
/* The file that args name, or stdin. */
tg_status tg_cli_open_input(const tg_args *args, FILE **out, tg_error *err) TG_MUST_CHECK;
/* TG_DATA when there were bad lines. */
tg_status tg_cli_bad_lines(long bad, tg_error *err) TG_MUST_CHECK;

#endif
