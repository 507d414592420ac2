/* Numbers go from the maps of the source's files to the new ones in small pieces; no model is built in memory. */
#include "learner/cli/export_job.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/nn/family/config_json.h"
#include "common/nn/finite.h"
#include "common/nn/model_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *const tokenizer_files[] = {"tokenizer.json",
                                              "tokenizer_config.json",
                                              "special_tokens_map.json",
                                              "added_tokens.json",
                                              "vocab.json",
                                              "merges.txt",
                                              "vocab.txt",
                                              "spiece.model",
                                              "tokenizer.model",
                                              "sentencepiece.bpe.model",
                                              "source.spm",
                                              "target.spm",
                                              "target_vocab.json",
                                              "chat_template.jinja",
                                              "chat_template.json"};

/* The type that all weights have in the source, f32 when they differ. */
static tg_dtype common_dtype(const tg_export_job *j) {
    tg_dtype first = TG_F32;
    bool any = false;
    for (size_t i = 0; i < j->params.n; i++) {
        const tg_st_tensor *t = j->weights.found[i];
        if (!t || j->params.list[i].role == TG_ROLE_VALUE_W) continue;
        if (any && t->dtype != first) return TG_F32;
        first = t->dtype;
        any = true;
    }
    return first == TG_F64 ? TG_F32 : first;
}

static void close_network(tg_export_job *j) {
    tg_weights_close(&j->weights);
    tg_params_fini(&j->params);
}

/* What the table has and the source has not: a value head, or waves that files leave out. */
static void drop_missing(tg_export_job *j) {
    size_t n = 0;
    for (size_t i = 0; i < j->params.n; i++) {
        if (!j->weights.found[i]) {
            if (j->params.list[i].role == TG_ROLE_VALUE_W) j->arch.value_head = false;
            continue;
        }
        j->params.list[n] = j->params.list[i];
        j->weights.found[n] = j->weights.found[i];
        j->weights.found_in[n++] = j->weights.found_in[i];
    }
    j->params.n = n;
}

/* Matches every tensor of the folder, or of its one file. */
static tg_status open_network(tg_export_job *j, const char *folder, const char *file,
                              tg_error *err) {
    j->arch.value_head = true;
    tg_status st = tg_params_init(&j->params, &j->arch, err);
    if (st != TG_OK) return st;
    st = file ? tg_weights_open_file(&j->weights, folder, file, &j->arch, &j->params, err)
              : tg_weights_open(&j->weights, folder, &j->arch, &j->params, err);
    if (st == TG_OK)
        drop_missing(j);
    else
        tg_params_fini(&j->params);
    return st;
}

static tg_status copy_file(const char *from, const char *to, const char *name, tg_error *err) {
    char *source = tg_path_join(from, name), *target = tg_path_join(to, name);
    tg_filemap map = {0};
    tg_status st =
        source && target ? tg_filemap_open(&map, source, err) : tg_fail_nomem(err, strlen(name));
    if (st == TG_OK) st = tg_file_write_atomic(target, map.data, map.len, err);
    tg_filemap_close(&map);
    tg_free(source);
    tg_free(target);
    return st;
}

/* Text of a settings file, NULL when it is not there. One that is no JSON object is not replaced by an empty one. */
static tg_status read_text(const char *folder, const char *name, tg_buf *out, tg_error *err) {
    if (!tg_folder_has(folder, name)) return TG_OK;
    tg_config_json settings;
    tg_status st = tg_config_json_open(&settings, folder, name, err);
    if (st != TG_OK) return st;
    st = tg_file_read(settings.path, 4 << 20, out, err);
    tg_config_json_close(&settings);
    return st;
}

/* Asked between two pieces, so that what was begun can be removed. */
static volatile sig_atomic_t stop_signal;

static void on_stop(int number) {
    stop_signal = number;
}

/* One stop may come as two signals (timeout sends it to the process and to its group), so a second one must not kill. */
static void watch_signals(void) {
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < TG_COUNT_OF(signals); i++) {
        struct sigaction now;
        if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
    }
}

/* As tg_weights_read; numbers above 65504 have no f16, and become infinite there. */
static tg_status read_numbers(void *arg, size_t i, size_t begin, size_t count, tg_dtype as,
                              void *out, tg_error *err) {
    enum { INFINITE = 0x7c00, NUMBER = 0x7fff };
    tg_export_job *j = arg;
    if (stop_signal)
        return tg_fail(err, TG_INTERRUPTED, "stopped by a signal (%s); %s", strsignal(stop_signal),
                       j->model_written ? "the model was written, its critic was not"
                                        : "nothing was written");
    tg_status st = tg_weights_read(&j->weights, i, begin, count, as, out, err);
    const uint16_t *half = out;
    for (size_t k = 0; st == TG_OK && as == TG_F16 && k < count; k++)
        j->infinite += (half[k] & NUMBER) == INFINITE;
    return st;
}

static tg_status write_network(void *arg, const char *folder, tg_error *err) {
    tg_export_job *j = arg;
    const char *settings = j->source.settings;
    tg_buf config = {0}, generation = {0};
    tg_status st = read_text(settings, "config.json", &config, err);
    if (st == TG_OK) st = read_text(settings, "generation_config.json", &generation, err);
    if (st == TG_OK) st = tg_model_write_config(folder, &j->arch, config.data, j->opts.dtype, err);
    if (st == TG_OK)
        st = tg_model_write_generation(folder, &j->arch, generation.data, config.data, err);
    for (size_t i = 0; i < TG_COUNT_OF(tokenizer_files) && st == TG_OK; i++)
        if (tg_folder_has(settings, tokenizer_files[i]))
            st = copy_file(settings, folder, tokenizer_files[i], err);
    if (st == TG_OK) st = tg_model_write_weights(folder, &j->params, j->opts, read_numbers, j, err);
    tg_buf_fini(&config);
    tg_buf_fini(&generation);
    return st;
}

/* What a tokenizer that was overwritten had, and the new one has not, would be read in its place. */
static tg_status remove_old_tokenizer(const tg_export_job *j, const char *out, tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; i < TG_COUNT_OF(tokenizer_files) && st == TG_OK; i++) {
        if (tg_folder_has(j->source.settings, tokenizer_files[i])) continue;
        char *path = tg_path_join(out, tokenizer_files[i]);
        st = path ? tg_file_remove(path, err) : tg_fail_nomem(err, strlen(out));
        tg_free(path);
    }
    return st;
}

/* Before anything is written: a critic that cannot be read is no reason to replace a model and leave it without one. */
static tg_status check_critic(tg_export_job *j, tg_error *err) {
    tg_status st = open_network(j, j->source.critic, j->source.critic_file, err);
    if (st == TG_OK) close_network(j);
    return st;
}

/* A critic that is a network of its own: a folder inside the new one. */
static tg_status write_critic(tg_export_job *j, const char *out, tg_error *err) {
    char *folder = tg_path_join(out, "value");
    tg_status st = folder ? open_network(j, j->source.critic, j->source.critic_file, err)
                          : tg_fail_nomem(err, strlen(out));
    if (st == TG_OK) {
        st = tg_model_write_folder(folder, write_network, j, err);
        close_network(j);
    }
    tg_free(folder);
    return st;
}

/* The critic of a model that was overwritten is none of the new one. */
static tg_status remove_old_critic(const char *out, tg_error *err) {
    char *folder = tg_path_join(out, "value");
    if (!folder) return tg_fail_nomem(err, strlen(out));
    tg_status st = TG_OK;
    if (tg_folder_has(folder, "value_head.safetensors")) st = tg_dir_remove(folder, err);
    tg_free(folder);
    return st;
}

static tg_status check_target(const tg_export_job *j, const char *out, bool overwrite,
                              tg_error *err) {
    char a[PATH_MAX], b[PATH_MAX];
    if (!tg_path_exists(out)) return TG_OK;
    if (!tg_path_is_dir(out))
        return tg_fail(err, TG_USAGE, "%s: is a file; name a folder to write", out);
    if (realpath(out, a) && ((realpath(j->source.folder, b) && !strcmp(a, b)) ||
                             (realpath(j->source.settings, b) && !strcmp(a, b))))
        return tg_fail(err, TG_USAGE, "%s: is the source; name another folder to write", out);
    bool taken = tg_folder_has(out, "config.json");
    for (const char *const *entry = tg_weight_entries; *entry && !taken; entry++)
        taken = tg_folder_has(out, *entry);
    if (taken && !overwrite)
        return tg_fail(err, TG_USAGE, "%s: already holds a model; give --overwrite to replace it",
                       out);
    return TG_OK;
}

static tg_status report(const tg_export_job *j, const char *out, bool dry, tg_error *err) {
    tg_buf text = {0};
    tg_buf_printf(&text, "%s%s%s\n", j->source.folder, j->source.file ? "/" : "",
                  j->source.file ? j->source.file : "");
    tg_model_summary(&text, &j->arch, &j->params, &j->weights);
    if (out) {
        size_t shards = tg_model_count_shards(&j->params, j->opts);
        tg_buf_printf(&text, "\n%s %s: %s, %zu weight file%s%s%s\n",
                      dry ? "would write" : "writing", out, tg_dtype_name(j->opts.dtype), shards,
                      shards == 1 ? "" : "s", j->arch.value_head ? ", value head" : "",
                      j->source.critic ? ", critic in value/" : "");
    }
    tg_status st = tg_stdout_write(&text, err);
    tg_buf_fini(&text);
    return st;
}

/* They are copied all the same: what is wrong with a model can be looked at elsewhere. */
static void warn_not_finite(const tg_export_job *j) {
    tg_error why = {0};
    if (tg_weights_finite(&j->weights, &j->params, &why) != TG_OK)
        tg_log_warn("export", "%s", why.msg);
}

/* Of two that replace the model in one folder at once, each could leave half of it. *fd: for as long as it is written, -1 where there is
 * no folder yet, which appears as a whole, or where a file system has no locks. */
static tg_status lock_target(const char *out, int *fd, tg_error *err) {
    *fd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0 || !flock(*fd, LOCK_EX | LOCK_NB)) return TG_OK;
    const bool busy = errno == EWOULDBLOCK;
    close(*fd);
    *fd = -1;
    return busy ? tg_fail(err, TG_BUSY, "%s: another process is writing a model into it", out)
                : TG_OK;
}

tg_status tg_export_run(tg_export_job *j, const char *source, const char *base, const char *out,
                        bool dry, bool overwrite, tg_error *err) {
    tg_status st = tg_export_source_find(&j->source, source, base, err);
    if (st == TG_OK) st = tg_arch_load(&j->arch, j->source.settings, err);
    if (st == TG_OK && out && j->source.critic) st = check_critic(j, err);
    if (st == TG_OK) st = open_network(j, j->source.folder, j->source.file, err);
    if (st != TG_OK) return st;
    if (j->keep_dtype) j->opts.dtype = common_dtype(j);
    if (out) st = check_target(j, out, overwrite, err);
    if (st == TG_OK) st = report(j, out, dry, err);
    bool write = out && !dry;
    int lock = -1;
    if (st == TG_OK && write) {
        watch_signals();
        warn_not_finite(j);
        st = lock_target(out, &lock, err);
    }
    /* looking at all numbers takes a while: another export may have been faster */
    if (st == TG_OK && write) st = check_target(j, out, overwrite, err);
    if (st == TG_OK && write) st = tg_model_write_folder(out, write_network, j, err);
    if (st == TG_OK && write) st = remove_old_tokenizer(j, out, err);
    close_network(j);
    j->model_written = write;
    if (st == TG_OK && write) st = remove_old_critic(out, err);
    if (st == TG_OK && write && j->source.critic) st = write_critic(j, out, err);
    if (lock >= 0) close(lock);
    if (st == TG_OK && j->infinite)
        tg_log_warn("export", "%zu weights are infinite as f16; bf16 has room for larger ones",
                    j->infinite);
    return st;
}
