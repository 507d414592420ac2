/* The registry of model families, and how names in weight files find their place in the table. */
#include "common/nn/family/family.h"

#include "common/base/buf.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

static const tg_family *const families[] = {
    &tg_family_gpt2,        &tg_family_gpt_neo,    &tg_family_gptj,
    &tg_family_gpt_neox,    &tg_family_opt,        &tg_family_bloom,
    &tg_family_llama,       &tg_family_mistral,    &tg_family_qwen2,
    &tg_family_qwen3,       &tg_family_gemma,      &tg_family_gemma2,
    &tg_family_gemma3_text, &tg_family_t5,         &tg_family_mt5,
    &tg_family_bart,        &tg_family_mbart,      &tg_family_marian,
    &tg_family_pegasus,     &tg_family_blenderbot, &tg_family_blenderbot_small,
    &tg_family_bert,        &tg_family_roberta,    &tg_family_xlm_roberta,
    &tg_family_distilbert,  &tg_family_albert,     NULL};

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

bool tg_family_is_head(const tg_family *f, const char *name) {
    for (const tg_family_tensor *t = f->tensors; t->name; t++)
        if (t->role == TG_ROLE_HEAD_W && !strcmp(t->name, name)) return true;
    return f->head_alias && !strcmp(f->head_alias, name);
}

bool tg_family_is_labels(const tg_family *f, const char *name) {
    for (const tg_family_tensor *t = f->tensors; t->name; t++)
        if (t->when == offsetof(tg_arch, labels) && !strcmp(t->name, name)) return true;
    return !strcmp(name, TG_CAUSAL_LABELS);
}

/* Left over in a model with labels from when it was a language model. */
static bool is_old_head(const tg_family *f, const char *name) {
    for (const tg_family_tensor *t = f->tensors; t->name; t++)
        if (t->role == TG_ROLE_HEAD_B && !strcmp(t->name, name)) return true;
    return tg_family_is_head(f, name);
}

bool tg_family_is_embed_alias(const tg_family *f, const char *name) {
    for (size_t i = 0; f->embed_aliases && f->embed_aliases[i]; i++) {
        const char *alias = f->embed_aliases[i];
        if (!strcmp(alias, name) || !strcmp(alias + strlen(f->prefix), name)) return true;
    }
    return false;
}

/* Files that came from TensorFlow call a norm's weight gamma and its bias beta. */
static const char *today(const char *name, char *out, size_t size) {
    static const char *const old[] = {".LayerNorm.gamma", ".LayerNorm.beta"},
                             *const now[] = {".LayerNorm.weight", ".LayerNorm.bias"};
    for (size_t i = 0; i < 2; i++) {
        if (!tg_str_ends(name, old[i])) continue;
        int head = (int)(strlen(name) - strlen(old[i]));
        int len = snprintf(out, size, "%.*s%s", head, name, now[i]);
        return len > 0 && (size_t)len < size ? out : name;
    }
    return name;
}

int tg_family_match(const tg_family *f, const tg_arch *arch, const tg_params *params,
                    const char *file_name) {
    char renamed[TG_PARAM_NAME_MAX];
    const char *name = today(file_name, renamed, sizeof renamed);
    const char *bare = tg_str_starts(name, f->prefix) ? name + strlen(f->prefix) : name;
    char full[TG_PARAM_NAME_MAX];
    int len = snprintf(full, sizeof full, "%s%s", f->prefix, bare);
    int hit = index_of(params, name);
    if (hit < 0 && len > 0 && (size_t)len < sizeof full) hit = index_of(params, full);
    if (hit >= 0) return hit;
    if (arch->labels && is_old_head(f, name)) return TG_MATCH_IGNORED;
    if (tg_family_is_head(f, name)) {
        tg_param_role role = arch->tied_head ? TG_ROLE_TOKEN_EMBED : TG_ROLE_HEAD_W;
        return (int)(tg_params_role(params, role, -1) - params->list);
    }
    if (tg_family_is_embed_alias(f, name)) {
        if (arch->split_embed) return TG_MATCH_IGNORED; /* both stacks have their own */
        return (int)(tg_params_role(params, TG_ROLE_TOKEN_EMBED, -1) - params->list);
    }
    for (size_t i = 0; hit < 0 && f->ignored[i]; i++)
        if (is_like(bare, f->ignored[i])) hit = TG_MATCH_IGNORED;
    return hit;
}
