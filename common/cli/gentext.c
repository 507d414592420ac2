/* textgen gentext: {"text": …} lines for training a small language model. Texts are independent of each other: line i
 * depends on the seed and i alone. Each ends by itself; a trainer adds the end-of-text token. */
#include "common/cli/gentext.h"

#include "common/base/file.h"
#include "common/cli/grammar.h"
#include "common/config/args.h"
#include "common/config/json.h"

#include <stdio.h>

static tg_status generate(uint64_t seed, int64_t first, int64_t n, const char *path,
                          tg_error *err) {
    tg_buf lines = {0}, text = {0};
    for (int64_t i = first; i < first + n; i++) {
        tg_buf_reset(&text);
        tg_grammar_text(seed, (uint64_t)i, &text);
        tg_buf_puts(&lines, "{\"text\": ");
        tg_json_string(&lines, text.data, text.len);
        tg_buf_puts(&lines, "}\n");
    }
    tg_status st = TG_OK;
    if (lines.failed || text.failed)
        st = tg_fail_nomem(err, lines.len);
    else
        st = path ? tg_file_write_atomic(path, lines.data, lines.len, err)
                  : tg_stdout_write(&lines, err);
    tg_buf_fini(&lines);
    tg_buf_fini(&text);
    return st;
}

int tg_cmd_gentext(int argc, char **argv) {
    int64_t seed = 1, lines = 1000, first = 0;
    const char *out = NULL;
    const tg_flag flags[] = {
        {"seed", TG_FLAG_INT, &seed, "S", "Another seed, another corpus."},
        {"lines", TG_FLAG_INT, &lines, "N", "How many texts."},
        {"first", TG_FLAG_INT, &first, "I", "Number of the first text; for a part of a corpus."},
        {"out", TG_FLAG_STR, &out, "FILE", "A .jsonl file; otherwise the lines go to stdout."},
        {0}};
    const tg_args_spec spec = {
        "textgen gentext",
        "[--seed S] [--lines N] [--out FILE]",
        "Writes short texts of numbers, dates and simple sentences, one JSON object a line.",
        flags,
        "  textgen gentext --seed 1 --lines 20\n",
        0,
        0,
        true};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (args.help)
        st = TG_OK;
    else if (lines < 0 || lines > 100000000 || first < 0 || first >= (int64_t)1 << 40)
        st = tg_fail(&err, TG_USAGE, "--lines goes from 0 to 100000000, --first from 0 to 2^40");
    else
        st = generate((uint64_t)seed, first, lines, out, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
