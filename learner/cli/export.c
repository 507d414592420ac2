#include "learner/cli/export.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/args.h"
#include "learner/cli/export_job.h"

#include <stdlib.h>
#include <string.h>

/* "5GB", "200MB", "1GiB", "4096". */
static tg_status parse_size(const char *text, size_t *out, tg_error *err) {
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},     {"B", 1},        {"KB", 1e3},        {"MB", 1e6},
                 {"GB", 1e9}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    char *end;
    double n = strtod(text, &end);
    while (*end == ' ') end++;
    for (size_t i = 0; i < TG_COUNT_OF(units) && end != text; i++)
        if (!strcasecmp(end, units[i].unit) && n * units[i].factor >= 1 &&
            n * units[i].factor < 1e18) {
            *out = (size_t)(n * units[i].factor);
            return TG_OK;
        }
    return tg_fail(err, TG_USAGE,
                   "--shard-size: expected a size as 5GB, 200MB or 1GiB, found \"%s\"", text);
}

static tg_status parse_dtype(tg_export_job *j, const char *text, tg_error *err) {
    static const struct {
        const char *name;
        tg_dtype dtype;
    } names[] = {{"f32", TG_F32},       {"float32", TG_F32}, {"bf16", TG_BF16},
                 {"bfloat16", TG_BF16}, {"f16", TG_F16},     {"float16", TG_F16}};
    j->keep_dtype = !strcmp(text, "keep");
    if (j->keep_dtype) return TG_OK;
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (!strcmp(names[i].name, text)) {
            j->opts.dtype = names[i].dtype;
            return TG_OK;
        }
    return tg_fail(err, TG_USAGE, "--dtype: expected f32, bf16, f16 or keep, found \"%s\"", text);
}

int tg_cmd_export(int argc, char **argv) {
    const char *dtype = "keep", *size = "5GB", *base = NULL;
    bool summary = false, dry = false, overwrite = false;
    const tg_flag flags[] = {
        {"dtype", TG_FLAG_STR, &dtype, "TYPE",
         "f32, bf16, f16, or keep (default): as the source has them."},
        {"shard-size", TG_FLAG_STR, &size, "SIZE",
         "Largest weight file, as 5GB (default) or 200MB; larger models become shards."},
        {"base", TG_FLAG_STR, &base, "NAME",
         "Model whose settings and tokenizer a checkpoint gets; default: the run's."},
        {"summary", TG_FLAG_SWITCH, &summary, NULL, "Only describe SOURCE; writes nothing."},
        {"dry-run", TG_FLAG_SWITCH, &dry, NULL, "Say what would be written; writes nothing."},
        {"overwrite", TG_FLAG_SWITCH, &overwrite, NULL, "OUT may already hold a model."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen export",
        .usage = "SOURCE [OUT] [options]",
        .summary =
            "Writes a model as a Hugging Face folder: config.json, tokenizer, safetensors.\n"
            "SOURCE is a model folder or name (safetensors or pytorch_model.bin, whole or in "
            "shards), a run folder, or one of its\n"
            "checkpoints. A value head is written as value_head.safetensors, a critic of its own "
            "as the folder value/.",
        .flags = flags,
        .examples = "  textgen export --summary textgen/tiny\n"
                    "  textgen export runs/first out/first\n"
                    "  textgen export runs/first/checkpoints/checkpoint_20 out/at-20\n"
                    "  textgen export old-model new-model --dtype bf16 --shard-size 2GB\n",
        .min_positional = 1,
        .max_positional = 2,
        .no_overrides = true};
    tg_error err = {0};
    tg_args args;
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (args.help) {
        tg_args_fini(&args);
        return 0;
    }
    tg_export_job *j = tg_alloc(sizeof *j);
    st = j ? parse_dtype(j, dtype, &err) : tg_fail_nomem(&err, sizeof *j);
    if (st == TG_OK) st = parse_size(size, &j->opts.shard_bytes, &err);
    const char *out = args.n_positional > 1 && !summary ? args.positional[1] : NULL;
    if (st == TG_OK && (!out || !out[0]) && !summary && !dry)
        st = tg_fail(&err, TG_USAGE, "a folder to write is missing (or --summary)");
    if (st == TG_OK) st = tg_export_run(j, args.positional[0], base, out, dry, overwrite, &err);
    if (j) tg_export_source_fini(&j->source);
    tg_free(j);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
