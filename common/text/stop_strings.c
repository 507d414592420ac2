/* The bytes of every token lie end to end; a check looks at the last few tokens only. Read-only after creation: any number of threads. */
#include "common/text/stop_strings.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/option.h"

#include <stdio.h>
#include <string.h>

enum { MAX_STOP = 1024 }; /* bytes of one text */

struct tg_stop_strings {
    tg_buf bytes;     /* of all tokens */
    uint32_t *offset; /* (vocab + 1) */
    int vocab;
    char **text; /* (n) */
    size_t n;
};

void tg_stop_strings_destroy(tg_stop_strings **sp) {
    tg_stop_strings *s = *sp;
    if (!s) return;
    for (size_t i = 0; s->text && i < s->n; i++) tg_free(s->text[i]);
    tg_free(s->text);
    tg_free(s->offset);
    tg_buf_fini(&s->bytes);
    tg_free(s);
    *sp = NULL;
}

static tg_status read_texts(tg_stop_strings *s, const tg_node *node, const char *path,
                            tg_error *err) {
    char where[256];
    snprintf(where, sizeof where, "%s.stop_strings", path);
    bool list = node->kind == TG_NODE_LIST;
    size_t n = list ? node->n_items : 1;
    s->text = tg_alloc_array(n, sizeof *s->text);
    if (!s->text) return tg_fail_nomem(err, n * sizeof *s->text);
    for (s->n = 0; s->n < n; s->n++) {
        const tg_node *item = list ? node->items[s->n] : node;
        if (item->kind != TG_NODE_SCALAR || !item->text[0] || strlen(item->text) > MAX_STOP)
            return tg_node_fail(item, where, err,
                                "expected a text of 1 to %d bytes, or a list of them", MAX_STOP);
        s->text[s->n] = tg_strdup(item->text);
        if (!s->text[s->n]) return tg_fail_nomem(err, strlen(item->text));
    }
    return TG_OK;
}

tg_status tg_stop_strings_create(tg_stop_strings **out, const tg_node *node, const char *path,
                                 const tg_tokenizer *t, int vocab, tg_error *err) {
    *out = NULL;
    tg_stop_strings *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->vocab = vocab;
    s->offset = tg_alloc_array((size_t)vocab + 1, sizeof *s->offset);
    tg_status st = s->offset ? read_texts(s, node, path, err)
                             : tg_fail_nomem(err, (size_t)vocab * sizeof *s->offset);
    for (int32_t id = 0; st == TG_OK && id < vocab; id++) {
        tg_tokenizer_piece(t, id, &s->bytes);
        s->offset[id + 1] = (uint32_t)s->bytes.len;
    }
    if (st == TG_OK && s->bytes.failed) st = tg_fail_nomem(err, s->bytes.len);
    if (st != TG_OK) tg_stop_strings_destroy(&s);
    *out = s;
    return st;
}

/* The bytes of the last tokens, as many as end in `tail`; returns where the last token's begin. */
static size_t gather(const tg_stop_strings *s, const int32_t *tokens, int n, char *tail,
                     size_t size, const char **text, size_t *len) {
    size_t used = 0, last = 0;
    for (int i = n - 1; i >= 0 && used < size; i--) {
        int32_t id = tokens[i];
        if (id < 0 || id >= s->vocab) continue;
        size_t bytes = s->offset[id + 1] - s->offset[id], take = TG_MIN(bytes, size - used);
        memcpy(tail + size - used - take, s->bytes.data + s->offset[id] + (bytes - take), take);
        used += take;
        if (i == n - 1) last = used;
    }
    *text = tail + size - used;
    *len = used;
    return used - last;
}

bool tg_stop_strings_hit(const tg_stop_strings *s, const int32_t *tokens, int n) {
    char tail[4 * MAX_STOP];
    const char *text;
    size_t len, last = gather(s, tokens, n, tail, sizeof tail, &text, &len);
    for (size_t i = 0; i < s->n; i++) {
        size_t stop = strlen(s->text[i]);
        /* complete within the last token */
        for (size_t end = TG_MAX(last + 1, stop); end <= len; end++)
            if (!memcmp(text + end - stop, s->text[i], stop)) return true;
    }
    return false;
}
