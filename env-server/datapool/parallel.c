/* Which files of a folder are a language pair's, and which split each belongs to. */
#include "env-server/datapool/parallel.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "env-server/datapool/parallel_table.h"
#include "env-server/datapool/table/files.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What may follow a language at the end of a name. */
static const char *const ends[] = {"",    ".txt",    ".sgm",    ".xml",
                                   ".gz", ".txt.gz", ".sgm.gz", ".xml.gz"};
enum { ENDS = sizeof ends / sizeof *ends };

/* Where ".en" of the name "x.en.sgm" begins; NULL: the name is not of that language. */
static const char *language_in(const char *name, const char *language) {
    char end[40];
    for (size_t i = 0; i < ENDS; i++) {
        snprintf(end, sizeof end, ".%.20s%s", language, ends[i]);
        if (tg_str_ends(name, end)) return name + strlen(name) - strlen(end);
    }
    return NULL;
}

static bool word_with_year(const char *name, const char *word, int year) {
    const char *at = strstr(name, word);
    if (!at || !isdigit((unsigned char)at[strlen(word)])) return false;
    return !year || atoi(at + strlen(word)) == year;
}

static bool belongs(const tg_parallel *p, const char *name, tg_split split) {
    if (split == TG_SPLIT_VAL)
        return tg_split_named(name, TG_SPLIT_VAL) || word_with_year(name, "dev", 0) ||
               (p->year && word_with_year(name, "newstest", p->year - 1));
    if (split == TG_SPLIT_TEST)
        return tg_split_named(name, TG_SPLIT_TEST) || word_with_year(name, "tst", 0) ||
               (p->year && word_with_year(name, "newstest", p->year));
    /* corpora such as europarl-v7 and commoncrawl do not say what they are for */
    return !tg_split_named(name, TG_SPLIT_VAL) && !tg_split_named(name, TG_SPLIT_TEST) &&
           !word_with_year(name, "dev", 0) && !word_with_year(name, "tst", 0) &&
           !word_with_year(name, "newstest", 0) && !word_with_year(name, "newsdev", 0);
}

/* "x-src.en.sgm" to "x-ref.de.sgm"; owned. *exists: it is there. */
static char *partner(const tg_parallel *p, const char *path) {
    const char *at = language_in(path, p->source);
    tg_buf out = {0};
    tg_buf_append(&out, path, (size_t)(at - path));
    tg_buf_printf(&out, ".%s%s", p->target, at + 1 + strlen(p->source));
    if (out.failed || tg_path_exists(out.data)) return tg_buf_take(&out);
    char *src = strstr(out.data + (tg_file_name(out.data) - out.data), "src");
    if (src) memcpy(src, "ref", 3);
    return tg_buf_take(&out);
}

/* The source files of the split, by name; train means those that say so, where there are any. */
static tg_status list_sources(const tg_parallel *p, const char *dir, tg_split split, tg_files *out,
                              tg_error *err) {
    tg_files all = {0};
    tg_status st = tg_files_list(&all, dir, NULL, err);
    bool named = false;
    for (size_t pass = 0; pass < 2 && st == TG_OK; pass++)
        for (size_t i = 0; i < all.n && st == TG_OK; i++) {
            const char *name = all.paths[i] ? tg_file_name(all.paths[i]) : "";
            if (!language_in(name, p->source) || !belongs(p, name, split)) continue;
            if (pass == 0) {
                named |= split == TG_SPLIT_TRAIN && tg_split_named(name, split);
                continue;
            }
            char *target = named && !tg_split_named(name, split) ? NULL : partner(p, all.paths[i]);
            if (target && tg_path_exists(target)) {
                st = tg_files_push(out, all.paths[i], err);
                all.paths[i] = NULL;
            }
            tg_free(target);
        }
    tg_files_fini(&all);
    return st;
}

static tg_status open_sources(const tg_parallel *p, const tg_place *place, const tg_files *f,
                              tg_table *out, tg_error *err) {
    tg_table *parts = tg_alloc_array(f->n, sizeof *parts);
    if (!parts) return tg_fail_nomem(err, f->n * sizeof *parts);
    const char *const languages[] = {p->source, p->target};
    tg_status st = TG_OK;
    size_t n = 0;
    for (; n < f->n && st == TG_OK; n++) {
        char *target = partner(p, f->paths[n]);
        const char *const paths[] = {f->paths[n], target};
        st = target
                 ? tg_parallel_table(&parts[n], paths, languages, !place->pool->context.compat, err)
                 : tg_fail_nomem(err, strlen(f->paths[n]));
        tg_free(target);
    }
    if (st == TG_OK)
        st = tg_table_concat(out, parts, n, err);
    else
        for (size_t i = 0; i < n; i++) tg_table_close(&parts[i]);
    tg_free(parts);
    return st;
}

/* "val" stands for val.en and val.de, in any of the forms. */
static tg_status list_prefix(const tg_parallel *p, const char *prefix, tg_files *out,
                             tg_error *err) {
    for (size_t i = 0; i < ENDS && !out->n; i++) {
        tg_buf path = {0};
        tg_buf_printf(&path, "%s.%s%s", prefix, p->source, ends[i]);
        char *source = tg_buf_take(&path);
        if (!source) return tg_fail_nomem(err, strlen(prefix));
        char *target = tg_path_exists(source) ? partner(p, source) : NULL;
        bool both = target && tg_path_exists(target);
        tg_free(target);
        if (!both) {
            tg_free(source);
            continue;
        }
        tg_status st = tg_files_push(out, source, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

tg_status tg_parallel_open(const tg_parallel *p, const tg_place *place, tg_table *out,
                           tg_error *err) {
    tg_files files = {0};
    tg_status st = TG_OK;
    if (place->is_file) {
        st = list_prefix(p, place->root, &files, err);
    } else {
        char pair[40], reverse[40];
        snprintf(pair, sizeof pair, "%.16s-%.16s", p->source, p->target);
        snprintf(reverse, sizeof reverse, "%.16s-%.16s", p->target, p->source);
        const char *const below[] = {"", pair, reverse};
        for (size_t i = 0; i < 3 && st == TG_OK && !files.n; i++) {
            char *dir = *below[i] ? tg_path_join(place->root, below[i]) : tg_strdup(place->root);
            st = dir ? list_sources(p, dir, place->split, &files, err)
                     : tg_fail_nomem(err, strlen(place->root));
            tg_free(dir);
        }
    }
    if (st == TG_OK && files.n) st = open_sources(p, place, &files, out, err);
    tg_files_fini(&files);
    return st;
}
