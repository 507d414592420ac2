/* Commands about tokenizers. argv[0] is the command's name; each returns the exit code. */
#ifndef TG_CLI_TOKENIZER_H
#define TG_CLI_TOKENIZER_H

int tg_cmd_tokenize(int argc, char **argv);
int tg_cmd_detokenize(int argc, char **argv);
int tg_cmd_tokenizer(int argc, char **argv);

#endif
