/* config.json of a model folder: read or refused by name, never a crash; what is read makes a table of tensors, plans, and a config.json
 * that reads the same again. */
#include "common/base/check.h"
#include "common/nn/decoder.h"
#include "common/nn/family/family.h"
#include "common/nn/pass.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "fuzz";

/* False: refused, with a reason. */
static bool read_arch(tg_arch *arch, json_t *root, const tg_family *family) {
    tg_error err = {0};
    tg_config_json config = {path, root};
    memset(arch, 0, sizeof *arch);
    memcpy(arch->family, family->name, strlen(family->name));
    tg_status st = family->read(arch, &config, &err);
    if (st == TG_OK) st = tg_arch_check(arch, &err);
    TG_ASSERT(st == TG_OK || ((st == TG_DATA || st == TG_UNSUPPORTED) && err.msg[0]));
    arch->pooler_by_file = false; /* of files, which there are none */
    return st == TG_OK;
}

static void plan(const tg_arch *arch) {
    tg_params p;
    const bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    if (arch->n_layers > 64 || arch->enc_layers > 64) return; /* slow, and nothing new */
    TG_ASSERT(tg_params_init(&p, arch, NULL) == TG_OK && p.n > 0 && p.total > 0);
    for (size_t i = 0; i < p.n; i++) TG_ASSERT(p.list[i].offset + p.list[i].count <= p.total);
    tg_params_fini(&p);
    const tg_pass_caps caps = {.tokens = 8, .seqs = 2, .actions = 4, .src = seq2seq ? 8 : 0};
    TG_ASSERT(tg_pass_bytes(arch, TG_MODEL_TRAINABLE, caps, TG_PASS_TRAIN) > 0);
    if (arch->kind != TG_KIND_ENCODER)
        TG_ASSERT(tg_decoder_bytes(
                      arch, (tg_decoder_caps){.slots = 2, .len = 3, .src = seq2seq ? 3 : 0}) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    const char *type = json_string_value(json_object_get(root, "model_type"));
    const tg_family *family = type ? tg_family_find(type) : NULL;
    tg_arch arch, again;
    if (family && read_arch(&arch, root, family)) {
        plan(&arch);
        TG_ASSERT(family->write(&arch, root));
        TG_ASSERT(read_arch(&again, root, family) && !memcmp(&arch, &again, sizeof arch));
    }
    json_decref(root);
    return 0;
}
