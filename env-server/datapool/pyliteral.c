/* A recursive reader of Python literals: strings, numbers, True, False, None, lists, tuples, dicts,
 * and numpy's arrays, which have spaces where lists have commas. Depth is bounded. */
#include "env-server/datapool/pyliteral.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32 };

typedef struct reader {
    const char *text;
    size_t at, len;
    unsigned depth;
    tg_error *err;
} reader;

static tg_status wrong(reader *r, const char *what) {
    return tg_fail(r->err, TG_DATA, "not a JSON or Python value: %s (column %zu)", what, r->at + 1);
}

static void skip_space(reader *r) {
    while (r->at < r->len && r->text[r->at] && strchr(" \t\r\n", r->text[r->at])) r->at++;
}

static bool take(reader *r, char c) {
    skip_space(r);
    if (r->at >= r->len || r->text[r->at] != c) return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word) {
    size_t n = strlen(word);
    if (r->len - r->at < n || memcmp(r->text + r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static bool hex(reader *r, unsigned digits, uint32_t *out) {
    char code[9] = "";
    if (r->len - r->at < digits) return false;
    memcpy(code, r->text + r->at, digits);
    if (strspn(code, "0123456789abcdefABCDEF") != digits) return false;
    *out = (uint32_t)strtoul(code, NULL, 16);
    r->at += digits;
    return *out && *out <= 0x10FFFF && (*out < 0xD800 || *out > 0xDFFF);
}

/* Behind a backslash. */
static tg_status read_escape(reader *r, tg_buf *out) {
    static const char letters[] = "ntrabfv\\'\"", meant[] = "\n\t\r\a\b\f\v\\'\"";
    if (r->at >= r->len) return wrong(r, "a text is not closed");
    char c = r->text[r->at++], encoded[4];
    const char *known = c ? strchr(letters, c) : NULL;
    uint32_t point = 0;
    if (known) {
        tg_buf_putc(out, meant[known - letters]);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        if (!hex(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, &point)) return wrong(r, "a bad escape");
        tg_buf_append(out, encoded, tg_utf8_encode(point, encoded));
    } else if (c != '\n') { /* Python keeps an unknown escape as it is */
        tg_buf_putc(out, '\\');
        tg_buf_putc(out, c);
    }
    return TG_OK;
}

static tg_status read_string(reader *r, char quote, json_t **out) {
    tg_buf text = {0};
    tg_status st = TG_OK;
    while (st == TG_OK) {
        if (r->at >= r->len) {
            st = wrong(r, "a text is not closed");
            break;
        }
        char c = r->text[r->at++];
        if (c == quote) break;
        if (c == '\\')
            st = read_escape(r, &text);
        else
            tg_buf_putc(&text, c);
    }
    if (st == TG_OK && text.failed) st = tg_fail_nomem(r->err, text.len);
    if (st == TG_OK && !(*out = json_stringn(text.data ? text.data : "", text.len)))
        st = wrong(r, "a text that is not UTF-8");
    tg_buf_fini(&text);
    return st;
}

static tg_status read_number(reader *r, json_t **out) {
    char number[64];
    size_t n = 0;
    while (r->at + n < r->len && r->text[r->at + n] &&
           strchr("+-0123456789.eEinfa", r->text[r->at + n]))
        n++;
    if (n == 0 || n >= sizeof number) return wrong(r, "expected a value");
    memcpy(number, r->text + r->at, n);
    number[n] = '\0';
    int64_t whole;
    double real;
    if (tg_parse_i64(number, &whole))
        *out = json_integer(whole);
    else if (tg_parse_f64(number[n - 1] == '.' ? (number[n - 1] = '\0', number) : number, &real))
        *out = json_real(real); /* numpy writes 1. for 1.0 */
    else
        return wrong(r, "expected a value");
    r->at += n;
    return *out ? TG_OK : wrong(r, "a number that is not finite");
}

static tg_status read_value(reader *r, json_t **out);

static tg_status read_list(reader *r, char close, json_t **out) {
    tg_status st = TG_OK;
    if (!(*out = json_array())) return tg_fail_nomem(r->err, 1);
    while (st == TG_OK && !take(r, close)) {
        json_t *item = NULL;
        st = read_value(r, &item);
        if (st == TG_OK && json_array_append_new(*out, item)) st = tg_fail_nomem(r->err, 1);
        (void)take(r, ',');
    }
    return st;
}

static tg_status read_dict(reader *r, json_t **out) {
    tg_status st = TG_OK;
    if (!(*out = json_object())) return tg_fail_nomem(r->err, 1);
    while (st == TG_OK && !take(r, '}')) {
        json_t *key = NULL, *value = NULL;
        st = read_value(r, &key);
        if (st == TG_OK && !json_is_string(key)) st = wrong(r, "a key is not a text");
        if (st == TG_OK && !take(r, ':')) st = wrong(r, "expected ':' behind a key");
        if (st == TG_OK) st = read_value(r, &value);
        if (st == TG_OK && json_object_set_new_nocheck(*out, json_string_value(key), value))
            st = tg_fail_nomem(r->err, 1);
        json_decref(key);
        if (st == TG_OK && !take(r, ',')) {
            if (take(r, '}')) break;
            st = wrong(r, "expected ',' or '}'");
        }
    }
    return st;
}

/* "array([1, 2], dtype=int64)" */
static tg_status read_array(reader *r, json_t **out) {
    tg_status st = take(r, '[') ? read_list(r, ']', out) : wrong(r, "expected '['");
    if (st != TG_OK) return st;
    while (r->at < r->len && r->text[r->at] != ')') r->at++;
    return take(r, ')') ? TG_OK : wrong(r, "expected ')'");
}

static tg_status read_bracketed(reader *r, json_t **out) {
    char c = r->text[r->at];
    if (++r->depth > MAX_DEPTH) return wrong(r, "nested too deeply");
    tg_status st;
    if (c == 'a') {
        st = take_word(r, "array(") ? read_array(r, out) : wrong(r, "expected a value");
    } else {
        r->at++;
        st = c == '{' ? read_dict(r, out) : read_list(r, c == '[' ? ']' : ')', out);
    }
    r->depth--;
    return st;
}

static tg_status read_value(reader *r, json_t **out) {
    *out = NULL;
    skip_space(r);
    if (r->at >= r->len) return wrong(r, "it ends too early");
    char c = r->text[r->at];
    if (c == '\'' || c == '"') {
        r->at++;
        return read_string(r, c, out);
    }
    tg_status st = TG_OK;
    if (c && strchr("[({a", c))
        st = read_bracketed(r, out);
    else if (take_word(r, "None") || take_word(r, "null"))
        *out = json_null();
    else if (take_word(r, "True") || take_word(r, "true"))
        *out = json_true();
    else if (take_word(r, "False") || take_word(r, "false"))
        *out = json_false();
    else
        st = read_number(r, out);
    if (st != TG_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return st;
}

tg_status tg_py_literal(const char *text, size_t len, json_t **out, tg_error *err) {
    *out = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    if (*out) return TG_OK;
    reader r = {text, 0, len, 0, err};
    tg_status st = read_value(&r, out);
    if (st == TG_OK) skip_space(&r);
    if (st == TG_OK && r.at < len) {
        st = wrong(&r, "something follows the value");
        json_decref(*out);
        *out = NULL;
    }
    return st;
}
