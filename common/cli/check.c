/* `textgen check`. The parts run one after the other and the first error ends the check, so that one mistake gives one line. */
#include "common/cli/check.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/cli/command.h"
#include "common/cli/process.h"
#include "common/config/args.h"
#include "common/config/run_config.h"

#include <stdio.h>
#include <string.h>

static const char *const parts[] = {"textgen-env", "textgen-learner"};

static tg_status status_of_code(int code) {
    for (int s = 1; s < TG_STATUS_COUNT; s++) {
        if (tg_status_exit_code((tg_status)s) == code) return (tg_status)s;
    }
    return TG_BUG;
}

/* "textgen-env: what" or "textgen-env check: what" to "what": the reader asked this program. */
static const char *without_name(const char *line, const char *part) {
    if (!tg_str_starts(line, part)) return line;
    const char *rest = line + strlen(part);
    if (tg_str_starts(rest, " check")) rest += strlen(" check");
    return tg_str_starts(rest, ": ") ? rest + 2 : line;
}

/* The last line of what a failing part said becomes the error; the lines before it go to the notes. */
static tg_status part_failed(const char *part, int code, tg_buf *said, tg_buf *notes,
                             tg_error *err) {
    while (said->len && said->data[said->len - 1] == '\n') said->data[--said->len] = '\0';
    if (!said->len)
        return tg_fail(err, TG_BUG, "%s check ended with exit code %d and said nothing", part,
                       code);
    char *last = strrchr(said->data, '\n');
    if (last) tg_buf_append(notes, said->data, (size_t)(last + 1 - said->data));
    last = last ? last + 1 : said->data;
    return tg_fail(err, status_of_code(code), "%s", without_name(last, part));
}

/* Runs one part; its resolved sections are parsed into the config's arena. */
static tg_status check_part(const char *part, const char *const *args, tg_run_config *c,
                            tg_node **sections, tg_buf *notes, tg_error *err) {
    tg_buf out = {0}, said = {0};
    int code = 0;
    tg_status st = tg_child_capture(part, args, &out, &said, &code, err);
    if (st == TG_OK && code) {
        st = part_failed(part, code, &said, notes, err);
    } else if (st == TG_OK) {
        if (said.len) tg_buf_append(notes, said.data, said.len);
        st = tg_tree_parse(&c->arena, part, out.data, out.len, sections, err);
        if (st == TG_OK && (*sections)->kind != TG_NODE_MAP)
            st = tg_fail(err, TG_BUG, "%s check: expected its sections as a JSON object on stdout",
                         part);
    }
    tg_buf_fini(&out);
    tg_buf_fini(&said);
    return st;
}

/* args[n] is the learner's own flag, or NULL. */
static tg_status check_parts(tg_checked *out, tg_run_config *c, const char **args, size_t n,
                             tg_error *err) {
    tg_node *sections[TG_COUNT_OF(parts)] = {0};
    const char *own = args[n];
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < TG_COUNT_OF(parts); i++) {
        args[n] = strcmp(parts[i], "textgen-learner") ? NULL : own;
        st = check_part(parts[i], args, c, &sections[i], &out->notes, err);
    }
    if (st != TG_OK) return st;
    tg_run_config_json(c, (const tg_node *const *)sections, TG_COUNT_OF(parts), &out->resolved);
    return out->resolved.failed ? tg_fail_nomem(err, out->resolved.len) : TG_OK;
}

tg_status tg_check_config(tg_checked *out, const char *path, const char *const *overrides,
                          size_t n_overrides, tg_check_for what, tg_error *err) {
    *out = (tg_checked){0};
    tg_run_config c;
    tg_status st = tg_run_config_load(&c, path, overrides, n_overrides, err);
    if (st != TG_OK) return st;
    const char **args = tg_alloc_array(n_overrides + 6, sizeof *args);
    if (args) {
        size_t n = 0;
        args[n++] = "check";
        args[n++] = "--config";
        args[n++] = path;
        if (what == TG_CHECK_SCHEMA) args[n++] = "--schema-only";
        for (size_t i = 0; i < n_overrides; i++) args[n++] = overrides[i];
        if (what == TG_CHECK_EVALUATE) args[n] = "--evaluation";
        st = check_parts(out, &c, args, n, err);
    } else {
        st = tg_fail_nomem(err, (n_overrides + 6) * sizeof *args);
    }
    tg_free(args);
    tg_run_config_fini(&c);
    return st;
}

void tg_checked_fini(tg_checked *c) {
    tg_buf_fini(&c->resolved);
    tg_buf_fini(&c->notes);
}

/* One config shows everything; of several, each gets one line. Returns the exit code. */
static int check_one(const char *path, const tg_args *args, bool schema_only, bool several) {
    tg_checked checked;
    tg_error err = {0};
    tg_status st = tg_check_config(&checked, path, args->overrides, args->n_overrides,
                                   schema_only ? TG_CHECK_SCHEMA : TG_CHECK_TRAIN, &err);
    int code = tg_status_exit_code(st);
    if (several) {
        if (st == TG_OK)
            printf("✓ %s\n", path);
        else
            printf("✗ %s%s%s\n", tg_str_starts(err.msg, path) ? "" : path,
                   tg_str_starts(err.msg, path) ? "" : ": ", err.msg);
    } else {
        if (checked.notes.len) fputs(checked.notes.data, stderr);
        if (st == TG_OK) st = tg_stdout_write(&checked.resolved, &err);
        if (st != TG_OK) code = tg_args_report("textgen check", &err);
    }
    tg_checked_fini(&checked);
    return code;
}

int tg_cmd_check(int argc, char **argv) {
    bool schema_only = false;
    const tg_flag flags[] = {{"schema-only", TG_FLAG_SWITCH, &schema_only, NULL,
                              "Check keys, types and ranges only; models and data need not exist."},
                             {0}};
    const tg_args_spec spec = {
        .name = "textgen check",
        .usage = "[--schema-only] CONFIG… [key=value…]",
        .summary = "Checks configs. One config: prints it with every default made explicit "
                   "(stdout) and the memory plan (stderr). "
                   "Several: one line each.",
        .flags = flags,
        .examples =
            "  textgen check configs/increasing_numbers.yml\n"
            "  textgen check configs/increasing_numbers.yml alg.args.n_epochs=2 > resolved.json\n"
            "  textgen check --schema-only configs/*.yml\n",
        .min_positional = 1,
        .max_positional = -1};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report(spec.name, &err);
    int code = 0;
    for (size_t i = 0; !args.help && i < args.n_positional; i++) {
        int one = check_one(args.positional[i], &args, schema_only, args.n_positional > 1);
        if (!code) code = one;
    }
    tg_args_fini(&args);
    return code;
}
