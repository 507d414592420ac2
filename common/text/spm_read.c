/* The wire format of Protocol Buffers: a key (field number and type), then a number or a length and
 * bytes. Every length is checked against what is left before it is used. */
#include "common/text/spm_read.h"

#include "common/base/alloc.h"
#include "common/text/utf8.h"
#include "common/text/vocab.h"

#include <math.h>
#include <string.h>

typedef struct bytes {
    const unsigned char *p;
    size_t len;
} bytes;

typedef struct field {
    uint64_t number;
    uint64_t value; /* varint, fixed32 and fixed64 */
    bytes data;     /* length-delimited */
} field;

static bool take_varint(bytes *in, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->len; shift += 7) {
        unsigned char b = *in->p++;
        in->len--;
        *out |= (uint64_t)(b & 0x7F) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

static bool take_fixed(bytes *in, unsigned n, uint64_t *out) {
    if (in->len < n) return false;
    *out = 0;
    for (unsigned i = 0; i < n; i++) *out |= (uint64_t)in->p[i] << 8 * i;
    in->p += n, in->len -= n;
    return true;
}

/* The next field; false at a fault. Ask only while in->len > 0. */
static bool take_field(bytes *in, field *f) {
    uint64_t key, len;
    if (!take_varint(in, &key)) return false;
    *f = (field){.number = key >> 3};
    switch (key & 7) {
    case 0: return take_varint(in, &f->value);
    case 1: return take_fixed(in, 8, &f->value);
    case 5: return take_fixed(in, 4, &f->value);
    case 2:
        if (!take_varint(in, &len) || len > in->len) return false;
        f->data = (bytes){in->p, (size_t)len};
        in->p += len, in->len -= (size_t)len;
        return true;
    default: return false;
    }
}

static tg_status broken(const tg_spm *m, const char *what, tg_error *err) {
    return tg_fail(err, TG_DATA, "%s: not a SentencePiece model: %s", m->name, what);
}

static tg_status add_piece(tg_spm *m, tg_spm_piece piece, tg_error *err) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 1024;
        tg_spm_piece *p = tg_realloc_array(m->pieces, cap, sizeof *p);
        if (!p) return tg_fail_nomem(err, cap * sizeof *p);
        m->pieces = p, m->cap = cap;
    }
    if (m->n > TG_VOCAB_MAX_ID) return broken(m, "too many pieces", err);
    m->pieces[m->n++] = piece;
    return TG_OK;
}

static tg_status read_piece(tg_spm *m, bytes in, tg_error *err) {
    field f;
    bytes text = {0};
    tg_spm_piece piece = {.type = TG_SPM_NORMAL};
    uint64_t type = TG_SPM_NORMAL;
    while (in.len) {
        if (!take_field(&in, &f)) return broken(m, "a piece is cut short", err);
        if (f.number == 1) text = f.data;
        if (f.number == 3) type = f.value;
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 2) memcpy(&piece.score, &bits, sizeof piece.score);
    }
    piece.text = text.len ? (const char *)text.p : "";
    piece.len = text.len;
    if (memchr(piece.text, 0, piece.len) ||
        tg_utf8_valid_prefix(piece.text, piece.len) != piece.len)
        return broken(m, "a piece is not UTF-8", err);
    if (type < TG_SPM_NORMAL || type > TG_SPM_BYTE)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: piece '%.*s' is of type %d, which is not built into this version",
                       m->name, (int)(piece.len < 40 ? piece.len : 40), piece.text, (int)type);
    if (!isfinite(piece.score)) return broken(m, "a score is not a number", err);
    piece.type = (tg_spm_type)type;
    return add_piece(m, piece, err);
}

static tg_status read_trainer(tg_spm *m, bytes in, tg_error *err) {
    field f;
    while (in.len) {
        if (!take_field(&in, &f)) return broken(m, "trainer_spec is cut short", err);
        int64_t id = (int32_t)(uint32_t)f.value; /* an int32, -1 as ten bytes */
        switch (f.number) {
        case 3: m->model_type = f.value; break;
        case 24: m->whitespace_as_suffix = f.value; break;
        case 35: m->byte_fallback = f.value; break;
        case 40: m->unk_id = id; break;
        case 41: m->bos_id = id; break;
        case 42: m->eos_id = id; break;
        case 43: m->pad_id = id; break;
        default: break;
        }
    }
    return TG_OK;
}

static tg_status read_normalizer(tg_spm *m, bytes in, tg_error *err) {
    field f;
    while (in.len) {
        if (!take_field(&in, &f)) return broken(m, "normalizer_spec is cut short", err);
        if (f.number == 2) m->charsmap = f.data.p, m->charsmap_len = f.data.len;
        if (f.number == 3) m->add_dummy_prefix = f.value;
        if (f.number == 4) m->remove_extra_whitespaces = f.value;
        if (f.number == 5) m->escape_whitespaces = f.value;
    }
    return TG_OK;
}

/* An id that names no piece is none. */
static int64_t checked(const tg_spm *m, int64_t id) {
    return id >= 0 && (uint64_t)id < m->n ? id : -1;
}

tg_status tg_spm_read(tg_spm *m, const char *name, const char *data, size_t len, tg_error *err) {
    /* Defaults of the format. */
    *m = (tg_spm){.name = name,
                  .model_type = TG_SPM_UNIGRAM,
                  .add_dummy_prefix = true,
                  .remove_extra_whitespaces = true,
                  .escape_whitespaces = true,
                  .unk_id = 0,
                  .bos_id = 1,
                  .eos_id = 2,
                  .pad_id = -1};
    bytes in = {(const unsigned char *)data, len};
    tg_status st = TG_OK;
    field f;
    while (in.len && st == TG_OK) {
        if (!take_field(&in, &f)) return broken(m, "a field is cut short", err);
        if (f.number == 1) st = read_piece(m, f.data, err);
        if (f.number == 2) st = read_trainer(m, f.data, err);
        if (f.number == 3) st = read_normalizer(m, f.data, err);
    }
    if (st == TG_OK && !m->n) st = broken(m, "it has no pieces", err);
    m->unk_id = checked(m, m->unk_id), m->bos_id = checked(m, m->bos_id);
    m->eos_id = checked(m, m->eos_id), m->pad_id = checked(m, m->pad_id);
    return st;
}

void tg_spm_fini(tg_spm *m) {
    tg_free(m->pieces);
    m->pieces = NULL;
}
