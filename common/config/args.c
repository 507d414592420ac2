/* The command-line parser shared by the three programs. Texts are borrowed from argv; only the two
 * arrays are allocated. */
#include "common/config/args.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FLAGS_MAX = 64, NAME_MAX_LEN = 64 };

static size_t count_flags(const tg_flag *flags) {
    size_t n = 0;
    while (flags && flags[n].name && n < FLAGS_MAX) n++;
    return n;
}

static bool same_name(const char *known, const char *given, size_t len) {
    if (strlen(known) != len) return false;
    for (size_t i = 0; i < len; i++) {
        char a = known[i] == '_' ? '-' : known[i], b = given[i] == '_' ? '-' : given[i];
        if (a != b) return false;
    }
    return true;
}

static const tg_flag *find_flag(const tg_flag *flags, const char *name, size_t len) {
    for (; flags && flags->name; flags++) {
        if (same_name(flags->name, name, len)) return flags;
    }
    return NULL;
}

static tg_status unknown_flag(const tg_args_spec *spec, const char *name, size_t len,
                              tg_error *err) {
    const char *names[FLAGS_MAX + 1];
    size_t n = count_flags(spec->flags);
    for (size_t i = 0; i < n; i++) names[i] = spec->flags[i].name;
    names[n++] = "help";
    char wanted[NAME_MAX_LEN];
    snprintf(wanted, sizeof wanted, "%.*s", (int)len, name);
    const char *near = tg_nearest(wanted, names, n);
    if (near)
        return tg_fail(err, TG_USAGE, "unknown option --%s, did you mean --%s?", wanted, near);
    return tg_fail(err, TG_USAGE, "unknown option --%s; %s --help lists the options", wanted,
                   spec->name);
}

static tg_status set_switch(const tg_flag *f, const char *value, tg_error *err) {
    bool on = !value || !strcmp(value, "true") || !strcmp(value, "True") || !strcmp(value, "1");
    bool off = !on && (!strcmp(value, "false") || !strcmp(value, "False") || !strcmp(value, "0"));
    if (!on && !off)
        return tg_fail(err, TG_USAGE, "--%s: expected true or false, found \"%s\"", f->name, value);
    *(bool *)f->out = on;
    return TG_OK;
}

static tg_status add_value(const tg_flag *f, const char *value, tg_error *err) {
    tg_flag_list *list = f->out;
    if (list->n == TG_FLAG_LIST_MAX)
        return tg_fail(err, TG_USAGE, "--%s: given more than %d times", f->name, TG_FLAG_LIST_MAX);
    list->v[list->n++] = value;
    return TG_OK;
}

static tg_status set_flag(const tg_flag *f, const char *value, tg_error *err) {
    switch (f->type) {
    case TG_FLAG_SWITCH: return set_switch(f, value, err);
    case TG_FLAG_STR: *(const char **)f->out = value; return TG_OK;
    case TG_FLAG_LIST: return add_value(f, value, err);
    case TG_FLAG_INT:
        if (tg_parse_i64(value, (int64_t *)f->out)) return TG_OK;
        return tg_fail(err, TG_USAGE, "--%s: expected a whole number, found \"%s\"", f->name,
                       value);
    case TG_FLAG_FLOAT:
        if (tg_parse_f64(value, (double *)f->out) && isfinite(*(double *)f->out)) return TG_OK;
        return tg_fail(err, TG_USAGE, "--%s: expected a number, found \"%s\"", f->name, value);
    }
    return tg_fail(err, TG_BUG, "--%s: unknown flag type", f->name);
}

/* argv[*i] is "--name", "--name=value"; *i moves over the value. */
static tg_status take_flag(const tg_args_spec *spec, int argc, char **argv, int *i, tg_error *err) {
    const char *name = argv[*i] + 2;
    size_t len = strcspn(name, "=");
    const tg_flag *f = find_flag(spec->flags, name, len);
    if (!f) return unknown_flag(spec, name, len, err);
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (!value && f->type != TG_FLAG_SWITCH) {
        if (*i + 1 >= argc || tg_str_starts(argv[*i + 1], "--"))
            return tg_fail(err, TG_USAGE, "--%s needs a value: --%s %s", f->name, f->name,
                           f->value ? f->value : "VALUE");
        value = argv[++*i];
    }
    return set_flag(f, value, err);
}

/* "alg.args.n_epochs=2", not "./a=b.yml". */
static bool is_override(const char *text) {
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (text[n] && strchr("_.-", text[n]))) n++;
    return n && text[n] == '=' && (isalpha((unsigned char)text[0]) || text[0] == '_');
}

static tg_status check_count(const tg_args_spec *spec, const tg_args *args, tg_error *err) {
    int n = (int)args->n_positional;
    if (n < spec->min_positional)
        return tg_fail(err, TG_USAGE, "an argument is missing; usage: %s %s", spec->name,
                       spec->usage);
    if (spec->max_positional >= 0 && n > spec->max_positional)
        return tg_fail(err, TG_USAGE, "unexpected argument \"%s\"; usage: %s %s",
                       args->positional[spec->max_positional], spec->name, spec->usage);
    return TG_OK;
}

static tg_status take_all(const tg_args_spec *spec, int argc, char **argv, tg_args *out,
                          tg_error *err) {
    tg_status st = TG_OK;
    bool flags_end = false;
    for (int i = 1; st == TG_OK && i < argc; i++) {
        const char *arg = argv[i];
        if (!flags_end && !strcmp(arg, "--"))
            flags_end = true;
        else if (!flags_end && (!strcmp(arg, "--help") || !strcmp(arg, "-h")))
            out->help = true;
        else if (!flags_end && tg_str_starts(arg, "--"))
            st = take_flag(spec, argc, argv, &i, err);
        else if (!flags_end && arg[0] == '-' && arg[1])
            st = tg_fail(err, TG_USAGE, "unknown option %s; %s --help lists the options", arg,
                         spec->name);
        else if (!spec->no_overrides && is_override(arg))
            out->overrides[out->n_overrides++] = arg;
        else
            out->positional[out->n_positional++] = arg;
        if (out->help) return TG_OK;
    }
    return st == TG_OK ? check_count(spec, out, err) : st;
}

tg_status tg_args_parse(const tg_args_spec *spec, int argc, char **argv, tg_args *out,
                        tg_error *err) {
    *out = (tg_args){0};
    size_t room = argc > 0 ? (size_t)argc : 1;
    out->positional = tg_alloc_array(room, sizeof *out->positional);
    out->overrides = tg_alloc_array(room, sizeof *out->overrides);
    tg_status st = out->positional && out->overrides
                       ? take_all(spec, argc, argv, out, err)
                       : tg_fail_nomem(err, room * sizeof *out->positional);
    if (st == TG_OK && out->help) {
        tg_buf text = {0};
        tg_args_help(spec, &text);
        st = tg_stdout_write(&text, err);
        tg_buf_fini(&text);
    }
    if (st != TG_OK) tg_args_fini(out);
    return st;
}

void tg_args_fini(tg_args *args) {
    tg_free(args->positional);
    tg_free(args->overrides);
    *args = (tg_args){0};
}

void tg_args_help(const tg_args_spec *spec, tg_buf *out) {
    tg_buf_printf(out, "%s\n\nusage: %s %s\n\noptions:\n", spec->summary, spec->name, spec->usage);
    for (const tg_flag *f = spec->flags; f && f->name; f++) {
        char head[80];
        snprintf(head, sizeof head, "--%s%s%s", f->name, f->value ? " " : "",
                 f->value ? f->value : "");
        tg_buf_printf(out, "  %-30s %s\n", head, f->help);
    }
    tg_buf_printf(out, "  %-30s %s\n", "--help", "This text.");
    if (spec->examples) tg_buf_printf(out, "\nexamples:\n%s", spec->examples);
}

void tg_args_begin(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        /* the lowest number that is free: fd. Without /dev/null all is as before */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

int tg_args_end(const char *name, int exit_code) {
    if (!fflush(stdout) && !ferror(stdout)) return exit_code;
    if (exit_code) return exit_code; /* that was said already */
    tg_error err;
    tg_fail_errno(&err, TG_IO, "cannot write to standard output");
    return tg_args_report(name, &err);
}

int tg_args_report(const char *name, const tg_error *err) {
    fprintf(stderr, "%s: %s\n", name, err->msg);
    return tg_status_exit_code(err->status);
}
