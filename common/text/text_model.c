/* Which model a tokenizer.json asks for. */
#include "common/text/text_model.h"

#include "common/text/bpe.h"

#include <string.h>

tg_status tg_text_model_read(tg_text_model **out, const json_t *part, bool byte_level,
                             tg_error *err) {
    *out = NULL;
    if (!json_is_object(part)) return tg_fail(err, TG_DATA, "model: expected an object");
    const char *type = tg_part_type(part);
    /* Files written before the type was saved: a BPE is known by its merges. */
    if (!type && json_object_get(part, "merges")) type = "BPE";
    if (!type) return tg_fail(err, TG_DATA, "model.type: missing");
    if (strcmp(type, "BPE"))
        return tg_fail(err, TG_UNSUPPORTED,
                       "model: type \"%.40s\" is not built into this version (BPE is)", type);
    if (!byte_level)
        return tg_fail(
            err, TG_UNSUPPORTED,
            "model: BPE without a ByteLevel pre_tokenizer is not built into this version");
    return tg_bpe_read(out, part, err);
}

void tg_text_model_destroy(tg_text_model **m) {
    if (*m) (*m)->ops->destroy(*m);
    *m = NULL;
}
