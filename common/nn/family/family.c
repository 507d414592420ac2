/* The registry of model families, and how names in weight files find their place in the table. */
#include "common/nn/family/family.h"

#include "common/base/buf.h"
#include "common/base/str.h"

#include <string.h>

static const tg_family *const families[] = {&tg_family_gpt2, NULL};

const tg_family *const *tg_family_list(void) {
    return families;
}

const tg_family *tg_family_find(const char *name) {
    for (size_t i = 0; families[i]; i++)
        if (!strcmp(families[i]->name, name)) return families[i];
    return NULL;
}

tg_status tg_family_unknown(const char *name, tg_error *err) {
    tg_buf known = {0};
    for (size_t i = 0; families[i]; i++)
        tg_buf_printf(&known, "%s%s", i ? ", " : "", families[i]->name);
    tg_status st = tg_fail(err, TG_UNSUPPORTED,
                           "model_type \"%.60s\" is not built into this version (there are: %s)",
                           name, known.data ? known.data : "");
    tg_buf_fini(&known);
    return st;
}

/* Whether name is pattern, with a number in place of %d. */
static bool is_like(const char *name, const char *pattern) {
    const char *number = strstr(pattern, "%d");
    if (!number) return !strcmp(name, pattern);
    size_t head = (size_t)(number - pattern);
    if (strncmp(name, pattern, head)) return false;
    size_t digits = strspn(name + head, "0123456789");
    return digits > 0 && !strcmp(name + head + digits, number + 2);
}

static int index_of(const tg_params *params, const char *name) {
    const tg_param *p = tg_params_find(params, name);
    return p ? (int)(p - params->list) : TG_MATCH_UNKNOWN;
}

int tg_family_match(const tg_family *f, const tg_arch *arch, const tg_params *params,
                    const char *name) {
    int hit = index_of(params, name);
    if (hit >= 0) return hit;
    if (arch->tied_head && !strcmp(name, "lm_head.weight")) {
        const tg_param *embed = tg_params_role(params, TG_ROLE_TOKEN_EMBED, -1);
        return (int)(embed - params->list);
    }
    const char *bare = tg_str_starts(name, f->prefix) ? name + strlen(f->prefix) : name;
    for (size_t i = 0; f->ignored[i]; i++)
        if (is_like(bare, f->ignored[i])) return TG_MATCH_IGNORED;
    if (bare != name) return TG_MATCH_UNKNOWN;
    char full[TG_PARAM_NAME_MAX];
    if (strlen(f->prefix) + strlen(name) >= sizeof full) return TG_MATCH_UNKNOWN;
    strcpy(full, f->prefix);
    strcat(full, name);
    return index_of(params, full);
}
