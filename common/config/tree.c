/* From libyaml's events to tg_node. One pass, recursive over a depth-limited document; every node
 * is in the caller's arena.
 *
 * Aliases are deep copies (an override of one use leaves the others alone), counted against
 * NODES_MAX, so a small file cannot grow without bound. An anchor is known only after its node is
 * complete: a node cannot contain itself. */
#include "common/config/tree.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/config/json_pairs.h"

#include <string.h>
#include <yaml.h>

enum { FILE_MAX = 4 << 20, DEPTH_MAX = 64, NODES_MAX = 100000, KEY_MAX = 128 };

typedef struct loader {
    yaml_parser_t parser;
    tg_arena *arena;
    const char *file;
    size_t n_nodes;
    tg_map anchors;
    tg_error *err;
} loader;

static tg_status build(loader *l, yaml_event_t *event, int depth, tg_node **out);

static tg_status fail_at(loader *l, int line, const char *what) {
    return tg_fail(l->err, TG_CONFIG, "%s:%d: %s", l->file, line, what);
}

static tg_status next_event(loader *l, yaml_event_t *event) {
    if (yaml_parser_parse(&l->parser, event)) return TG_OK;
    const yaml_parser_t *p = &l->parser;
    if (p->error == YAML_MEMORY_ERROR) return tg_fail_nomem(l->err, 0);
    const char *problem = p->problem ? p->problem : "not valid YAML";
    int line = (int)p->problem_mark.line + 1;
    if (p->error == YAML_READER_ERROR)
        return tg_fail(l->err, TG_CONFIG, "%s: not valid text: %s (byte %zu)", l->file, problem,
                       p->problem_offset);
    return tg_fail(l->err, TG_CONFIG, "%s:%d: not valid YAML: %s%s%s", l->file, line, problem,
                   p->context ? " " : "", p->context ? p->context : "");
}

static tg_status new_node(loader *l, tg_node_kind kind, int line, tg_node **out) {
    if (++l->n_nodes > NODES_MAX)
        return tg_fail(l->err, TG_CONFIG, "%s:%d: more than %d values in one config", l->file, line,
                       NODES_MAX);
    tg_node *n = tg_arena_alloc(l->arena, sizeof *n);
    if (!n) return tg_fail_nomem(l->err, sizeof *n);
    n->kind = kind;
    n->file = l->file;
    n->line = line;
    *out = n;
    return TG_OK;
}

/* Capacity is the next power of two of n_items, so it needs no field of its own. */
static tg_status push(loader *l, tg_node *parent, tg_node *child) {
    size_t n = parent->n_items;
    if ((n & (n - 1)) == 0) {
        tg_node **grown = tg_arena_array(l->arena, n ? 2 * n : 1, sizeof *grown);
        if (!grown) return tg_fail_nomem(l->err, 2 * n * sizeof *grown);
        if (n) memcpy(grown, parent->items, n * sizeof *grown);
        parent->items = grown;
    }
    parent->items[parent->n_items++] = child;
    return TG_OK;
}

static tg_status copy_text(loader *l, const yaml_event_t *event, const char **out) {
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    if (memchr(text, '\0', len))
        return fail_at(l, (int)event->start_mark.line + 1,
                       "a text may not contain the NUL character");
    char *copy = tg_arena_strndup(l->arena, text, len);
    *out = copy;
    return copy ? TG_OK : tg_fail_nomem(l->err, len);
}

static bool null_word(const char *text) {
    return !*text || !strcmp(text, "~") || !strcmp(text, "null") || !strcmp(text, "Null") ||
           !strcmp(text, "NULL");
}

/* The standard tags change nothing but !!str, which makes any text a string; others would run code
 * in Python. */
static tg_status check_tag(loader *l, const yaml_char_t *tag, int line, bool *is_string) {
    *is_string = false;
    if (!tag) return TG_OK;
    const char *t = (const char *)tag, *std = "tag:yaml.org,2002:";
    static const char *const known[] = {"str",  "int", "float", "bool",
                                        "null", "map", "seq",   "python/tuple"};
    *is_string = !strcmp(t, "!") || !strcmp(t, "tag:yaml.org,2002:str");
    if (*is_string) return TG_OK;
    for (size_t i = 0; tg_str_starts(t, std) && i < sizeof known / sizeof *known; i++) {
        if (!strcmp(t + strlen(std), known[i])) return TG_OK;
    }
    return tg_fail(l->err, TG_CONFIG, "%s:%d: the YAML tag %s is not supported", l->file, line, t);
}

static tg_status build_scalar(loader *l, const yaml_event_t *event, tg_node *n) {
    bool is_string;
    tg_status st = check_tag(l, event->data.scalar.tag, n->line, &is_string);
    if (st == TG_OK) st = copy_text(l, event, &n->text);
    if (st != TG_OK) return st;
    n->quoted = is_string || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!n->quoted && null_word(n->text)) n->kind = TG_NODE_NULL;
    return TG_OK;
}

static tg_status copy_node(loader *l, const tg_node *from, int depth, tg_node **out) {
    if (depth > DEPTH_MAX) return fail_at(l, from->line, "nested deeper than 64 levels");
    tg_node *n = NULL;
    tg_status st = new_node(l, from->kind, from->line, &n);
    if (st != TG_OK) return st;
    size_t n_items = from->n_items;
    *n = *from;
    n->items = NULL;
    n->n_items = 0;
    for (size_t i = 0; st == TG_OK && i < n_items; i++) {
        tg_node *child = NULL;
        st = copy_node(l, from->items[i], depth + 1, &child);
        if (st == TG_OK) st = push(l, n, child);
    }
    *out = n;
    return st;
}

static tg_status build_alias(loader *l, const yaml_event_t *event, int depth, tg_node **out) {
    const char *name = (const char *)event->data.alias.anchor;
    int line = (int)event->start_mark.line + 1;
    uint64_t found;
    if (!tg_map_get(&l->anchors, name, strlen(name), &found))
        return tg_fail(l->err, TG_CONFIG, "%s:%d: *%.80s: no such anchor before this line", l->file,
                       line, name);
    tg_status st = copy_node(l, (const tg_node *)(uintptr_t)found, depth, out);
    if (st == TG_OK) (*out)->key = NULL;
    return st;
}

static tg_status build_list(loader *l, int depth, tg_node *list) {
    for (;;) {
        yaml_event_t event;
        tg_status st = next_event(l, &event);
        if (st != TG_OK) return st;
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        tg_node *item = NULL;
        if (!end) st = build(l, &event, depth + 1, &item);
        if (!end && st == TG_OK) st = push(l, list, item);
        yaml_event_delete(&event);
        if (end || st != TG_OK) return st;
    }
}

/* "<<: *base" or "<<: [*a, *b]": keys of the merged maps that the map does not set itself; the
 * first one wins. */
static tg_status merge(loader *l, tg_node *map, const tg_node *from) {
    if (from->kind == TG_NODE_LIST) {
        tg_status st = TG_OK;
        for (size_t i = 0; st == TG_OK && i < from->n_items; i++) {
            if (from->items[i]->kind == TG_NODE_LIST)
                return fail_at(l, from->line, "<<: expected maps in the list");
            st = merge(l, map, from->items[i]);
        }
        return st;
    }
    if (from->kind != TG_NODE_MAP)
        return fail_at(l, from->line, "<<: expected a map, or a list of maps");
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < from->n_items; i++) {
        if (!tg_node_get(map, from->items[i]->key)) st = push(l, map, from->items[i]);
    }
    return st;
}

static tg_status check_duplicates(loader *l, const tg_node *map) {
    tg_map seen = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < map->n_items; i++) {
        const tg_node *n = map->items[i];
        size_t len = strlen(n->key);
        uint64_t first;
        if (tg_map_get(&seen, n->key, len, &first))
            st = tg_fail(l->err, TG_CONFIG, "%s:%d: the key \"%.80s\" is already on line %d",
                         l->file, n->line, n->key, (int)first);
        else if (!tg_map_set(&seen, n->key, len, (uint64_t)n->line))
            st = tg_fail_nomem(l->err, len);
    }
    tg_map_fini(&seen);
    return st;
}

static tg_status build_entry(loader *l, const yaml_event_t *key_event, int depth, const char **key,
                             tg_node **value) {
    int line = (int)key_event->start_mark.line + 1;
    if (key_event->type != YAML_SCALAR_EVENT) return fail_at(l, line, "a key must be a plain word");
    if (key_event->data.scalar.length > KEY_MAX)
        return fail_at(l, line, "a key is longer than 128 bytes");
    tg_status st = copy_text(l, key_event, key);
    if (st != TG_OK) return st;
    yaml_event_t event;
    st = next_event(l, &event);
    if (st != TG_OK) return st;
    st = build(l, &event, depth + 1, value);
    yaml_event_delete(&event);
    if (st != TG_OK) return st;
    (*value)->key = *key;
    (*value)->line =
        line; /* errors about a key point at the key, also where its map starts a line later */
    return TG_OK;
}

static tg_status build_map(loader *l, int depth, tg_node *map) {
    tg_node merged = {.kind = TG_NODE_LIST, .file = l->file, .line = map->line};
    for (;;) {
        yaml_event_t event;
        tg_status st = next_event(l, &event);
        if (st != TG_OK) return st;
        bool end = event.type == YAML_MAPPING_END_EVENT;
        if (!end) {
            bool plain_key = event.type == YAML_SCALAR_EVENT &&
                             event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
            const char *key = NULL;
            tg_node *value = NULL;
            st = build_entry(l, &event, depth, &key, &value);
            if (st == TG_OK) st = push(l, plain_key && !strcmp(key, "<<") ? &merged : map, value);
        }
        yaml_event_delete(&event);
        if (st != TG_OK) return st;
        if (end) break;
    }
    tg_status st = check_duplicates(l, map);
    for (size_t i = 0; st == TG_OK && i < merged.n_items; i++) st = merge(l, map, merged.items[i]);
    return st;
}

static tg_status remember(loader *l, const yaml_char_t *anchor, const tg_node *n) {
    if (!anchor) return TG_OK;
    const char *name = (const char *)anchor;
    return tg_map_set(&l->anchors, name, strlen(name), (uint64_t)(uintptr_t)n)
               ? TG_OK
               : tg_fail_nomem(l->err, strlen(name));
}

/* The node that starts with this event; the caller deletes the event. */
static tg_status build(loader *l, yaml_event_t *event, int depth, tg_node **out) {
    int line = (int)event->start_mark.line + 1;
    if (depth > DEPTH_MAX) return fail_at(l, line, "nested deeper than 64 levels");
    if (event->type == YAML_ALIAS_EVENT) return build_alias(l, event, depth, out);
    tg_node_kind kind = event->type == YAML_SCALAR_EVENT           ? TG_NODE_SCALAR
                        : event->type == YAML_SEQUENCE_START_EVENT ? TG_NODE_LIST
                                                                   : TG_NODE_MAP;
    tg_node *n = NULL;
    tg_status st = new_node(l, kind, line, &n);
    if (st != TG_OK) return st;
    const yaml_char_t *anchor = NULL;
    bool is_string;
    if (kind == TG_NODE_SCALAR) {
        anchor = event->data.scalar.anchor;
        st = build_scalar(l, event, n);
    } else if (kind == TG_NODE_LIST) {
        anchor = event->data.sequence_start.anchor;
        st = check_tag(l, event->data.sequence_start.tag, line, &is_string);
        if (st == TG_OK) st = build_list(l, depth, n);
    } else {
        anchor = event->data.mapping_start.anchor;
        st = check_tag(l, event->data.mapping_start.tag, line, &is_string);
        if (st == TG_OK) st = build_map(l, depth, n);
    }
    if (st == TG_OK) st = remember(l, anchor, n);
    *out = n;
    return st;
}

/* Stream start, at most one document, stream end. */
static tg_status build_document(loader *l, tg_node **root) {
    tg_status st = TG_OK;
    for (bool done = false; st == TG_OK && !done;) {
        yaml_event_t event;
        st = next_event(l, &event);
        if (st != TG_OK) break;
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT: break;
        case YAML_DOCUMENT_START_EVENT:
            if (*root)
                st = fail_at(l, (int)event.start_mark.line + 1,
                             "a second document (---) in one file");
            break;
        case YAML_STREAM_END_EVENT: done = true; break;
        default: st = build(l, &event, 0, root); break;
        }
        yaml_event_delete(&event);
    }
    if (st == TG_OK && !*root) st = new_node(l, TG_NODE_NULL, 1, root);
    return st;
}

static tg_status parse(tg_arena *a, const char *name, const char *text, size_t len, tg_node **out,
                       tg_error *err) {
    loader l = {.arena = a, .err = err, .file = tg_arena_strdup(a, name)};
    if (!l.file || !yaml_parser_initialize(&l.parser)) return tg_fail_nomem(err, strlen(name));
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)(len ? text : ""), len);
    tg_node *root = NULL;
    tg_status st = build_document(&l, &root);
    yaml_parser_delete(&l.parser);
    tg_map_fini(&l.anchors);
    if (st == TG_OK) *out = root;
    return st;
}

tg_status tg_tree_parse(tg_arena *a, const char *name, const char *text, size_t len, tg_node **out,
                        tg_error *err) {
    *out = NULL;
    if (len > FILE_MAX)
        return tg_fail(err, TG_CONFIG, "%s: larger than the %d bytes a config may have", name,
                       FILE_MAX);
    tg_status st = parse(a, name, text, len, out, err);
    if (st != TG_CONFIG) return st;
    tg_buf joined = {0};
    if (tg_json_join_pairs(text, len, &joined))
        st = parse(a, name, joined.data, joined.len, out, err);
    tg_buf_fini(&joined);
    return st;
}

tg_status tg_tree_load(tg_arena *a, const char *path, tg_node **out, tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_file_read(path, FILE_MAX, &text, err);
    if (st == TG_OK) st = tg_tree_parse(a, path, text.data, text.len, out, err);
    tg_buf_fini(&text);
    return st;
}
