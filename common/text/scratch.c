/* A free list under a mutex; a scratch is in the list or with exactly one call. */
#include "common/text/scratch.h"

#include "common/base/alloc.h"
#include "common/text/regex.h"

void tg_scratch_pool_init(tg_scratch_pool *p) {
    pthread_mutex_init(&p->lock, NULL);
    p->free = NULL;
}

static void destroy(tg_scratch *s) {
    tg_buf_fini(&s->clean);
    tg_spans_fini(&s->at);
    tg_tokens_fini(&s->tokens[0]);
    tg_tokens_fini(&s->tokens[1]);
    tg_aligned_fini(&s->normal[0]);
    tg_aligned_fini(&s->normal[1]);
    tg_aligned_fini(&s->spaced);
    tg_aligned_fini(&s->prefixed);
    tg_free(s->points);
    tg_buf_fini(&s->joined);
    tg_wordcache_destroy(&s->words);
    tg_free(s->symbols);
    tg_free(s->heap);
    tg_free(s->path);
    tg_regex_match_destroy(&s->match);
    tg_free(s);
}

tg_scratch *tg_scratch_take(tg_scratch_pool *p) {
    pthread_mutex_lock(&p->lock);
    tg_scratch *s = p->free;
    if (s) p->free = s->next;
    pthread_mutex_unlock(&p->lock);
    if (s) return s;
    s = tg_alloc(sizeof *s);
    if (!s) return NULL;
    s->words = tg_wordcache_create();
    if (s->words) return s;
    destroy(s);
    return NULL;
}

void tg_scratch_give(tg_scratch_pool *p, tg_scratch *s) {
    pthread_mutex_lock(&p->lock);
    s->next = p->free;
    p->free = s;
    pthread_mutex_unlock(&p->lock);
}

void tg_scratch_pool_fini(tg_scratch_pool *p) {
    while (p->free) {
        tg_scratch *s = p->free;
        p->free = s->next;
        destroy(s);
    }
    pthread_mutex_destroy(&p->lock);
}
