/* Looking for a model folder. Every place that is tried is kept, so that the error can list them.
 * Reads the environment and the file system only; nothing is downloaded. */
#include "common/config/locate.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct search {
    const char *kind; /* "models" or "datasets" */
    tg_buf tried;     /* ", "-separated */
    char *found;
} search;

/* Takes the owned path; true when it is the folder. */
static bool try_folder(search *s, char *path) {
    if (!path) {
        s->tried.failed = true;
        return false;
    }
    if (tg_path_is_dir(path)) {
        s->found = path;
        return true;
    }
    const char *why = tg_path_exists(path) ? " (is a file)"
                      : errno == EACCES    ? " (permission denied)"
                                           : "";
    tg_buf_printf(&s->tried, "%s%s%s", s->tried.len ? ", " : "", path, why);
    tg_free(path);
    return false;
}

static char *joined(const char *a, const char *middle, const char *b) {
    tg_buf out = {0};
    tg_buf_printf(&out, "%s%s%s", a, middle, b);
    return tg_buf_take(&out);
}

/* "org/name" is stored by the hub's client as models--org--name (datasets--…)/snapshots/<commit>, with the commit
 * in refs/main. */
static bool try_hub(search *s, const char *hub, const char *name) {
    tg_buf base = {0}, commit = {0};
    tg_buf_printf(&base, "%s/%s--", hub, s->kind);
    for (const char *p = name; *p; p++) {
        if (*p == '/')
            tg_buf_puts(&base, "--");
        else
            tg_buf_putc(&base, *p);
    }
    char *ref = base.failed ? NULL : tg_path_join(base.data, "refs/main");
    bool found = false;
    if (!ref) {
        s->tried.failed = true;
    } else if (tg_file_read(ref, 256, &commit, NULL) != TG_OK || !commit.len) {
        tg_buf_printf(&s->tried, "%s%s", s->tried.len ? ", " : "", base.data);
    } else {
        commit.data[strcspn(commit.data, "\r\n \t")] = '\0';
        tg_buf_printf(&base, "/snapshots/%s", commit.data);
        found = try_folder(s, tg_buf_take(&base));
    }
    tg_free(ref);
    tg_buf_fini(&commit);
    tg_buf_fini(&base);
    return found;
}

/* Where the hub's client looks, and its order. */
static bool try_hubs(search *s, const char *name) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *base = getenv(places[i].variable);
        if (!base || !*base) continue;
        char *hub = joined(base, "", places[i].below);
        bool found = hub && try_hub(s, hub, name);
        if (!hub) s->tried.failed = true;
        tg_free(hub);
        if (found) return true;
    }
    return false;
}

/* Built-in models lie in configs/models of the source tree (a few folders above a build/ binary) or
 * of an installation. */
static bool try_built_in(search *s, const char *name) {
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return false;
    exe[n] = '\0';
    char *slash = strrchr(exe, '/');
    if (!slash) return false;
    *slash = '\0';
    static const char *const below[] = {"/../configs/models/", "/../../configs/models/",
                                        "/../../../configs/models/",
                                        "/../share/textgen/configs/models/"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        if (try_folder(s, joined(exe, below[i], name))) return true;
    }
    return false;
}

static bool looks_like_path(const char *name) {
    return name[0] == '/' || tg_str_starts(name, "./") || tg_str_starts(name, "../");
}

tg_status tg_model_locate(const char *model_name, char **path, tg_error *err) {
    *path = NULL;
    if (!model_name || !*model_name)
        return tg_fail(err, TG_NOINPUT, "model_name is empty: expected a folder or a model's name");
    search s = {.kind = "models"};
    const char *models = getenv("TEXTGEN_MODELS");
    bool found = try_folder(&s, tg_strdup(model_name));
    if (!found && !looks_like_path(model_name)) {
        found = (models && *models && try_folder(&s, joined(models, "/", model_name))) ||
                try_hubs(&s, model_name) ||
                (tg_str_starts(model_name, "textgen/") &&
                 try_built_in(&s, model_name + strlen("textgen/")));
    }
    tg_status st = TG_OK;
    if (found)
        *path = s.found;
    else if (s.tried.failed)
        st = tg_fail_nomem(err, 0);
    else
        st = tg_fail(err, TG_NOINPUT,
                     "model \"%.120s\" was not found; looked in: %.420s. Give the path of a "
                     "Hugging Face model folder, or set "
                     "TEXTGEN_MODELS to the folder that holds it",
                     model_name, s.tried.data);
    tg_buf_fini(&s.tried);
    return st;
}

tg_status tg_hub_dataset(const char *name, char **path, tg_error *err) {
    search s = {.kind = "datasets"};
    (void)try_hubs(&s, name);
    *path = s.found;
    tg_status st = !s.found && s.tried.failed ? tg_fail_nomem(err, strlen(name)) : TG_OK;
    tg_buf_fini(&s.tried);
    return st;
}
