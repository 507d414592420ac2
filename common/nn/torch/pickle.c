/* The machine: a loop over opcodes. Reading comes only through take(), which holds the end of the file. */
#include "common/nn/torch/pickle.h"

#include "common/nn/torch/pickle_names.h"
#include "common/nn/torch/pickle_stack.h"

#include <stdbool.h>
#include <string.h>

/* What Python's own pickler makes of a table of tensors needs less than 6 bytes here for one of its. */
enum { PER_BYTE = 8, AT_LEAST = 1 << 16, NAME_MAX_LEN = 200 };

static tg_status take(tg_pickle *p, size_t n, const unsigned char **out) {
    if (n > p->len - p->at) return tg_pickle_bad(p, "the file ends inside it");
    *out = p->bytes + p->at;
    p->at += n;
    return TG_OK;
}

/* An unsigned number of that many bytes. */
static tg_status take_number(tg_pickle *p, int bytes, uint64_t *out) {
    const unsigned char *b = NULL;
    tg_status st = take(p, (size_t)bytes, &b);
    *out = 0;
    for (int i = bytes - 1; i >= 0 && st == TG_OK; i--) *out = *out << 8 | b[i];
    return st;
}

/* Up to a newline, which is not part of it. */
static tg_status take_line(tg_pickle *p, const char **out, size_t *len) {
    const unsigned char *begin = p->bytes + p->at;
    size_t left = p->len - p->at;
    if (left > NAME_MAX_LEN) left = NAME_MAX_LEN;
    const unsigned char *end = left ? memchr(begin, '\n', left) : NULL;
    if (!end) return tg_pickle_bad(p, "a name without an end");
    *out = (const char *)begin;
    *len = (size_t)(end - begin);
    p->at += *len + 1;
    return TG_OK;
}

static tg_status extend_by(tg_pickle *p, tg_pickle_kind kind, size_t n) {
    tg_pickle_value *items = NULL;
    tg_status st = tg_pickle_pop(p, n, &items);
    return st == TG_OK ? tg_pickle_extend(p, kind, items, n) : st;
}

static tg_status extend_to_mark(tg_pickle *p, tg_pickle_kind kind) {
    tg_pickle_value *items = NULL;
    size_t n = 0;
    tg_status st = tg_pickle_pop_to_mark(p, &items, &n);
    return st == TG_OK ? tg_pickle_extend(p, kind, items, n) : st;
}

static tg_status put_at(tg_pickle *p, int bytes) {
    uint64_t index;
    tg_status st = take_number(p, bytes, &index);
    return st == TG_OK ? tg_pickle_put(p, index) : st;
}

static tg_status recall(tg_pickle *p, int bytes) {
    uint64_t index;
    tg_status st = take_number(p, bytes, &index);
    return st == TG_OK ? tg_pickle_recall(p, index) : st;
}

static tg_status push_int(tg_pickle *p, int bytes, bool is_signed) {
    uint64_t v;
    tg_status st = take_number(p, bytes, &v);
    int64_t i = is_signed ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v;
    return st == TG_OK ? tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_INT, .i = i}) : st;
}

static tg_status push_long(tg_pickle *p) {
    uint64_t n;
    const unsigned char *b = NULL;
    tg_status st = take_number(p, 1, &n);
    if (st == TG_OK) st = take(p, (size_t)n, &b);
    if (st != TG_OK) return st;
    if (n > 8)
        return tg_pickle_push(
            p, (tg_pickle_value){.kind = TG_PICKLE_LONG, .n = (uint32_t)n, .text = b});
    uint64_t v = n && b[n - 1] & 0x80 ? ~0ull : 0;
    for (size_t i = (size_t)n; i-- > 0;) v = v << 8 | b[i];
    return tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_INT, .i = (int64_t)v});
}

static tg_status push_float(tg_pickle *p) {
    const unsigned char *b = NULL;
    tg_status st = take(p, 8, &b);
    if (st != TG_OK) return st;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | b[i];
    tg_pickle_value v = {.kind = TG_PICKLE_FLOAT};
    memcpy(&v.f, &bits, sizeof v.f);
    return tg_pickle_push(p, v);
}

/* Text behind a length of that many bytes. */
static tg_status push_text(tg_pickle *p, int bytes) {
    uint64_t n;
    const unsigned char *text = NULL;
    tg_status st = take_number(p, bytes, &n);
    if (st == TG_OK) st = take(p, (size_t)n, &text);
    if (st != TG_OK) return st;
    return tg_pickle_push(
        p, (tg_pickle_value){.kind = TG_PICKLE_TEXT, .n = (uint32_t)n, .text = text});
}

static tg_status push_top_tuple(tg_pickle *p, size_t n) {
    tg_pickle_value *items = NULL;
    tg_status st = tg_pickle_pop(p, n, &items);
    return st == TG_OK ? tg_pickle_push_tuple(p, items, n) : st;
}

static tg_status push_marked_tuple(tg_pickle *p) {
    tg_pickle_value *items = NULL;
    size_t n = 0;
    tg_status st = tg_pickle_pop_to_mark(p, &items, &n);
    return st == TG_OK ? tg_pickle_push_tuple(p, items, n) : st;
}

static int shown(size_t len) {
    return (int)(len < 60 ? len : 60);
}

static tg_status push_global(tg_pickle *p, const char *module, size_t module_len, const char *name,
                             size_t name_len) {
    int id = p->host.global(p->host.arg, module, module_len, name, name_len);
    if (id < 0)
        return tg_fail(
            p->err, TG_DATA,
            "pickle byte %zu: it asks for Python's %.*s.%.*s, which a table of tensors does not "
            "need; nothing was executed",
            p->op_at, shown(module_len), module, shown(name_len), name);
    return tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_GLOBAL, .n = (uint32_t)id});
}

static tg_status global_of_lines(tg_pickle *p) {
    const char *module = NULL, *name = NULL;
    size_t module_len = 0, name_len = 0;
    tg_status st = take_line(p, &module, &module_len);
    if (st == TG_OK) st = take_line(p, &name, &name_len);
    return st == TG_OK ? push_global(p, module, module_len, name, name_len) : st;
}

static tg_status global_of_stack(tg_pickle *p) {
    tg_pickle_value *v = NULL;
    tg_status st = tg_pickle_pop(p, 2, &v);
    if (st != TG_OK) return st;
    if (v[0].kind != TG_PICKLE_TEXT || v[1].kind != TG_PICKLE_TEXT)
        return tg_pickle_bad(p, "a global whose name is not text");
    return push_global(p, (const char *)v[0].text, v[0].n, (const char *)v[1].text, v[1].n);
}

static tg_status load(tg_pickle *p) {
    tg_pickle_value *id = NULL, out = {0};
    tg_status st = tg_pickle_pop(p, 1, &id);
    if (st == TG_OK) st = p->host.load(p->host.arg, p, id, &out, p->err);
    return st == TG_OK ? tg_pickle_push(p, out) : st;
}

static tg_status call(tg_pickle *p) {
    tg_pickle_value *v = NULL, out = {0};
    tg_status st = tg_pickle_pop(p, 2, &v);
    if (st != TG_OK) return st;
    if (v[0].kind != TG_PICKLE_GLOBAL || v[1].kind != TG_PICKLE_TUPLE)
        return tg_pickle_bad(p, "a call of what is no function, or without a tuple of arguments");
    st = p->host.call(p->host.arg, p, v[0].n, &v[1], &out, p->err);
    return st == TG_OK ? tg_pickle_push(p, out) : st;
}

/* The attributes of a dict (a state dict carries its versions so) are dropped. */
static tg_status build(tg_pickle *p) {
    tg_pickle_value *state = NULL;
    tg_status st = tg_pickle_pop(p, 1, &state);
    if (st != TG_OK) return st;
    if (!p->depth || p->stack[p->depth - 1].kind != TG_PICKLE_DICT)
        return tg_pickle_bad(p, "attributes for what is no dict");
    return TG_OK;
}

static tg_status skip(tg_pickle *p, size_t n) {
    const unsigned char *b = NULL;
    return take(p, n, &b);
}

static tg_status protocol(tg_pickle *p) {
    uint64_t version;
    tg_status st = take_number(p, 1, &version);
    if (st == TG_OK && (version < 2 || version > 5))
        st = tg_pickle_bad(p, "a protocol other than 2 to 5");
    return st;
}

static tg_status refuse(tg_pickle *p, unsigned char op) {
    const char *name = tg_pickle_opcode_name(op);
    return tg_fail(p->err, TG_DATA,
                   "pickle byte %zu: opcode %s (0x%02x), which a table of tensors does not need",
                   p->op_at, name ? name : "unknown", op);
}

static tg_status run_op(tg_pickle *p, unsigned char op) {
    switch (op) {
    case 0x80: return protocol(p);
    case 0x95: return skip(p, 8);
    case '(': return tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_MARK});
    case 'N': return tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_NONE});
    case 0x88: return tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_BOOL, .i = 1});
    case 0x89: return tg_pickle_push(p, (tg_pickle_value){.kind = TG_PICKLE_BOOL, .i = 0});
    case 'J': return push_int(p, 4, true);
    case 'K': return push_int(p, 1, false);
    case 'M': return push_int(p, 2, false);
    case 0x8a: return push_long(p);
    case 'G': return push_float(p);
    case 'X':
    case 'T': return push_text(p, 4);
    case 0x8c:
    case 'U': return push_text(p, 1);
    case ')': return tg_pickle_push_tuple(p, NULL, 0);
    case 0x85:
    case 0x86:
    case 0x87: return push_top_tuple(p, (size_t)op - 0x84);
    case 't': return push_marked_tuple(p);
    case ']': return tg_pickle_push_list(p, TG_PICKLE_LIST);
    case 'a': return extend_by(p, TG_PICKLE_LIST, 1);
    case 'e': return extend_to_mark(p, TG_PICKLE_LIST);
    case '}': return tg_pickle_push_list(p, TG_PICKLE_DICT);
    case 's': return extend_by(p, TG_PICKLE_DICT, 2);
    case 'u': return extend_to_mark(p, TG_PICKLE_DICT);
    case 'q': return put_at(p, 1);
    case 'r': return put_at(p, 4);
    case 0x94: return tg_pickle_put(p, p->memo_next);
    case 'h': return recall(p, 1);
    case 'j': return recall(p, 4);
    case 'c': return global_of_lines(p);
    case 0x93: return global_of_stack(p);
    case 'Q': return load(p);
    case 'R': return call(p);
    case 'b': return build(p);
    default: return refuse(p, op);
    }
}

/* The dict lies at the bottom, on it keys and values in turn; a value that is not made yet begins with a function or a mark. */
const tg_pickle_value *tg_pickle_open_key(const tg_pickle *p) {
    const tg_pickle_value *v = p->stack;
    if (!p->depth || v[0].kind != TG_PICKLE_DICT) return NULL;
    size_t i = p->depth > 1 && v[1].kind == TG_PICKLE_MARK ? 2 : 1;
    while (i + 1 < p->depth && v[i + 1].kind != TG_PICKLE_MARK && v[i + 1].kind != TG_PICKLE_GLOBAL)
        i += 2;
    return i < p->depth && v[i].kind == TG_PICKLE_TEXT ? &v[i] : NULL;
}

void tg_pickle_init(tg_pickle *p, tg_pickle_host host) {
    *p = (tg_pickle){.host = host};
}

tg_status tg_pickle_run(tg_pickle *p, const unsigned char *bytes, size_t len, size_t *used,
                        tg_pickle_value *out, tg_error *err) {
    p->bytes = bytes;
    p->len = len;
    p->at = p->depth = p->memo_next = 0;
    p->err = err;
    if (p->memo_cap) memset(p->memo, 0, p->memo_cap * sizeof *p->memo);
    p->used = 0;
    for (;;) {
        p->op_at = p->at;
        p->budget = AT_LEAST + PER_BYTE * p->at; /* what was read so far pays */
        const unsigned char *op = NULL;
        tg_status st = take(p, 1, &op);
        if (st != TG_OK) return st;
        if (*op == '.') break;
        st = run_op(p, *op);
        if (st != TG_OK) return st;
    }
    *used = p->at;
    if (p->depth != 1 || p->stack[0].kind == TG_PICKLE_MARK)
        return tg_pickle_bad(p, "it ends with other than one value");
    *out = p->stack[0];
    return TG_OK;
}
