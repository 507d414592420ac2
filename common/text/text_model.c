/* Which model a tokenizer.json asks for. */
#include "common/text/text_model.h"

#include "common/text/bpe.h"
#include "common/text/unigram.h"
#include "common/text/wordlevel.h"
#include "common/text/wordpiece.h"

#include <string.h>

/* Files written before the type was saved: each model is known by a key of its own. */
static const char *guess(const json_t *part) {
    if (json_object_get(part, "merges")) return "BPE";
    if (json_is_array(json_object_get(part, "vocab"))) return "Unigram";
    if (json_object_get(part, "max_input_chars_per_word")) return "WordPiece";
    return json_object_get(part, "vocab") ? "WordLevel" : NULL;
}

tg_status tg_text_model_read(tg_text_model **out, const json_t *part, bool byte_level,
                             tg_error *err) {
    *out = NULL;
    if (!json_is_object(part)) return tg_fail(err, TG_DATA, "model: expected an object");
    const char *type = tg_part_type(part);
    if (!type) type = guess(part);
    if (!type) return tg_fail(err, TG_DATA, "model.type: missing");
    bool bpe = !strcmp(type, "BPE");
    if (byte_level && !bpe)
        return tg_fail(err, TG_UNSUPPORTED,
                       "model: \"%.40s\" with a ByteLevel pre_tokenizer is not built into this "
                       "version",
                       type);
    if (!strcmp(type, "WordPiece")) return tg_wordpiece_read(out, part, err);
    if (!strcmp(type, "Unigram")) return tg_unigram_read(out, part, err);
    if (!strcmp(type, "WordLevel")) return tg_wordlevel_read(out, part, err);
    if (!bpe)
        return tg_fail(err, TG_UNSUPPORTED,
                       "model: type \"%.40s\" is not built into this version (BPE, WordPiece, "
                       "Unigram and WordLevel are)",
                       type);
    return tg_bpe_read(out, part, byte_level, err);
}

void tg_text_model_destroy(tg_text_model **m) {
    if (*m) (*m)->ops->destroy(*m);
    *m = NULL;
}
