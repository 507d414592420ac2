/* Command lines: typed flag tables, positional arguments, key=value overrides, --help.
 *
 *     int64_t n = 10;
 *     const tg_flag flags[] = {{"n", TG_FLAG_INT, &n, "N", "How many."}, {0}};
 *     const tg_args_spec spec = {"textgen data", "CONFIG [options]", "Shows prompts.", flags, "  textgen data c.yml --n 3\n", 1, 1};
 *     tg_args args;
 *     tg_status st = tg_args_parse(&spec, argc, argv, &args, err);     // argv[0] is skipped
 *     if (st == TG_OK && args.help) { tg_args_fini(&args); return 0; } // --help was printed
 *
 * Flags are "--flag value", "--flag=value" or, for a switch, "--flag"; '-' and '_' in a name are
 * the same. "--" ends the flags. An unknown flag is TG_USAGE (exit 64) with the nearest known one.
 */
#ifndef TG_CONFIG_ARGS_H
#define TG_CONFIG_ARGS_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_flag_type {
    TG_FLAG_SWITCH, /* bool */
    TG_FLAG_STR,    /* const char *, borrowed from argv */
    TG_FLAG_INT,    /* int64_t */
    TG_FLAG_FLOAT,  /* double */
    TG_FLAG_LIST,   /* tg_flag_list: every value of a flag that is given several times */
} tg_flag_type;

enum { TG_FLAG_LIST_MAX = 64 };
typedef struct tg_flag_list {
    const char *v[TG_FLAG_LIST_MAX]; /* borrowed from argv */
    size_t n;
} tg_flag_list;

typedef struct tg_flag {
    const char *name; /* without "--"; NULL ends the table */
    tg_flag_type type;
    void *out;         /* holds the default; set only when the flag is given */
    const char *value; /* how --help calls the value; NULL for a switch */
    const char *help;  /* one sentence */
} tg_flag;

typedef struct tg_args_spec {
    const char *name;                   /* "textgen train" */
    const char *usage;                  /* what follows the name */
    const char *summary;                /* one sentence */
    const tg_flag *flags;               /* NULL: none */
    const char *examples;               /* lines that run as they stand */
    int min_positional, max_positional; /* max -1: any number */
    bool no_overrides;                  /* key=value is an ordinary argument */
} tg_args_spec;

typedef struct tg_args {
    const char **positional; /* borrowed texts, owned arrays */
    size_t n_positional;
    const char **overrides; /* the key=value arguments, in order */
    size_t n_overrides;
    bool help; /* --help was given and has been printed on stdout */
} tg_args;

/* argv[0] is not looked at. On failure *out is empty and needs no fini. */
tg_status tg_args_parse(const tg_args_spec *spec, int argc, char **argv, tg_args *out,
                        tg_error *err) TG_MUST_CHECK;
void tg_args_fini(tg_args *args);

/* The text of --help. */
void tg_args_help(const tg_args_spec *spec, tg_buf *out);

/* "name: message" on stderr; returns the exit code of err's status. For the last line of a command.
 */
int tg_args_report(const char *name, const tg_error *err);
/* For the first line of main: a stream that is closed stays an error to read or write, but its number is taken, so that no file that is
 * opened later gets what is meant for it. */
void tg_args_begin(void);
/* For the last line of main: the exit code, or that of TG_IO with a line on stderr when what was printed could not be written. */
int tg_args_end(const char *name, int exit_code);

#endif
