/* Series in families, in order of making. Updates are single atomic operations; making and writing lock. */
#include "common/net/stats.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { COUNTER, GAUGE, HISTOGRAM };

/* Upper limits in seconds, and as Prometheus wants them written. */
static const struct {
    double limit;
    const char *text;
} buckets[] = {{1e-5, "1e-05"},  {2.5e-5, "2.5e-05"}, {5e-5, "5e-05"},
               {1e-4, "0.0001"}, {2.5e-4, "0.00025"}, {5e-4, "0.0005"},
               {1e-3, "0.001"},  {2.5e-3, "0.0025"},  {5e-3, "0.005"},
               {1e-2, "0.01"},   {2.5e-2, "0.025"},   {5e-2, "0.05"},
               {0.1, "0.1"},     {0.25, "0.25"},      {0.5, "0.5"},
               {1, "1"},         {2.5, "2.5"},        {5, "5"},
               {10, "10"},       {30, "30"},          {60, "60"}};
enum { N_BUCKETS = sizeof buckets / sizeof *buckets };

typedef struct hist {
    atomic_uint_least64_t count[N_BUCKETS + 1]; /* the last: above every limit */
    atomic_uint_least64_t sum_ns;
} hist;

struct tg_stat {
    tg_stat *next; /* of the family */
    char *labels;  /* a="x",b="y"; NULL: none */
    char *value;   /* as it was given, to find the series again */
    int kind;
    atomic_uint_least64_t bits; /* counter: the number; set and gauges: a double's bits */
    atomic_bool is_double;
    hist *h;
};

typedef struct family {
    struct family *next;
    const char *name, *help;
    int kind;
    tg_stat *first, **last;
} family;

struct tg_stats {
    pthread_mutex_t lock;
    family *first, **last;
    tg_stat spare; /* counts what could not be made */
    hist spare_hist;
};

tg_stats *tg_stats_create(void) {
    tg_stats *s = tg_alloc(sizeof *s);
    if (!s) return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->last = &s->first;
    s->spare.h = &s->spare_hist;
    return s;
}

static void free_stat(tg_stat *t) {
    if (!t) return;
    tg_free(t->labels);
    tg_free(t->value);
    tg_free(t->h);
    tg_free(t);
}

void tg_stats_destroy(tg_stats **stats) {
    if (!*stats) return;
    for (family *f = (*stats)->first, *next; f; f = next) {
        for (tg_stat *t = f->first, *after; t; t = after) {
            after = t->next;
            free_stat(t);
        }
        next = f->next;
        tg_free(f);
    }
    pthread_mutex_destroy(&(*stats)->lock);
    tg_free(*stats);
    *stats = NULL;
}

/* ---- making --------------------------------------------------------------------------------- */

static void put_escaped(tg_buf *out, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\' || text[i] == '"') tg_buf_putc(out, '\\');
        if (text[i] == '\n')
            tg_buf_puts(out, "\\n");
        else
            tg_buf_putc(out, text[i]);
    }
}

static char *label_text(const char *names, const char *values) {
    tg_buf out = {0};
    for (;;) {
        size_t n = strcspn(names, ","), v = strcspn(values, ",");
        if (!names[n]) v = strlen(values); /* the last takes the rest */
        tg_buf_append(&out, names, n);
        tg_buf_puts(&out, "=\"");
        put_escaped(&out, values, v);
        tg_buf_putc(&out, '"');
        if (!names[n] || !values[v]) break;
        tg_buf_putc(&out, ',');
        names += n + 1, values += v + 1;
    }
    return tg_buf_take(&out);
}

static family *family_of(tg_stats *s, int kind, const char *name, const char *help) {
    for (family *f = s->first; f; f = f->next)
        if (!strcmp(f->name, name)) return f;
    family *f = tg_alloc(sizeof *f);
    if (!f) return NULL;
    f->name = name, f->help = help, f->kind = kind;
    f->last = &f->first;
    *s->last = f;
    s->last = &f->next;
    return f;
}

static tg_stat *new_stat(int kind, const char *label_name, const char *label_value) {
    tg_stat *t = tg_alloc(sizeof *t);
    if (!t) return NULL;
    t->kind = kind;
    bool ok = true;
    if (label_name) {
        t->value = tg_strdup(label_value);
        t->labels = label_text(label_name, label_value);
        ok = t->value && t->labels;
    }
    if (kind == HISTOGRAM) ok = (t->h = tg_alloc(sizeof *t->h)) && ok;
    if (ok) return t;
    free_stat(t);
    return NULL;
}

static tg_stat *find(const family *f, const char *value) {
    for (tg_stat *t = f->first; t; t = t->next)
        if (value ? t->value && !strcmp(t->value, value) : !t->value) return t;
    return NULL;
}

static tg_stat *make(tg_stats *s, int kind, const char *name, const char *help,
                     const char *label_name, const char *label_value) {
    pthread_mutex_lock(&s->lock);
    family *f = family_of(s, kind, name, help);
    tg_stat *t = f ? find(f, label_name ? label_value : NULL) : NULL;
    if (f && !t && (t = new_stat(kind, label_name, label_value))) {
        *f->last = t;
        f->last = &t->next;
    }
    pthread_mutex_unlock(&s->lock);
    return t ? t : &s->spare;
}

tg_stat *tg_stats_counter(tg_stats *s, const char *name, const char *help, const char *label_name,
                          const char *label_value) {
    return make(s, COUNTER, name, help, label_name, label_value);
}

tg_stat *tg_stats_gauge(tg_stats *s, const char *name, const char *help, const char *label_name,
                        const char *label_value) {
    return make(s, GAUGE, name, help, label_name, label_value);
}

tg_stat *tg_stats_histogram(tg_stats *s, const char *name, const char *help, const char *label_name,
                            const char *label_value) {
    return make(s, HISTOGRAM, name, help, label_name, label_value);
}

/* ---- updating ------------------------------------------------------------------------------- */

void tg_stat_add(tg_stat *t, uint64_t n) {
    atomic_fetch_add_explicit(&t->bits, n, memory_order_relaxed);
}

void tg_stat_set(tg_stat *t, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    atomic_store_explicit(&t->is_double, true, memory_order_relaxed);
    atomic_store_explicit(&t->bits, bits, memory_order_relaxed);
}

void tg_stat_observe(tg_stat *t, double seconds) {
    if (!(seconds >= 0)) return; /* NaN too */
    size_t i = 0;
    while (i < N_BUCKETS && seconds > buckets[i].limit) i++;
    atomic_fetch_add_explicit(&t->h->count[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->h->sum_ns, (uint64_t)(seconds < 1e9 ? seconds * 1e9 : 1e18),
                              memory_order_relaxed);
}

static uint64_t observed(const hist *h) {
    uint64_t n = 0;
    for (size_t i = 0; i <= N_BUCKETS; i++)
        n += atomic_load_explicit(&h->count[i], memory_order_relaxed);
    return n;
}

double tg_stat_value(const tg_stat *t) {
    if (t->kind == HISTOGRAM) return (double)observed(t->h);
    uint64_t bits = atomic_load_explicit(&t->bits, memory_order_relaxed);
    if (!atomic_load_explicit(&t->is_double, memory_order_relaxed)) return (double)bits;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void write_histogram(const family *f, const tg_stat *t, tg_buf *out) {
    const char *labels = t->labels ? t->labels : "", *comma = t->labels ? "," : "";
    const char *open = t->labels ? "{" : "", *close = t->labels ? "}" : "";
    uint64_t n = 0;
    for (size_t i = 0; i <= N_BUCKETS; i++) {
        n += atomic_load_explicit(&t->h->count[i], memory_order_relaxed);
        tg_buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", f->name, labels, comma,
                      i < N_BUCKETS ? buckets[i].text : "+Inf", (unsigned long long)n);
    }
    tg_buf_printf(out, "%s_sum%s%s%s %.9g\n", f->name, open, labels, close,
                  (double)atomic_load_explicit(&t->h->sum_ns, memory_order_relaxed) * 1e-9);
    tg_buf_printf(out, "%s_count%s%s%s %llu\n", f->name, open, labels, close,
                  (unsigned long long)n);
}

static void write_family(const family *f, tg_buf *out) {
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    if (!f->first) return;
    tg_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, kinds[f->kind]);
    for (const tg_stat *t = f->first; t; t = t->next) {
        if (f->kind == HISTOGRAM)
            write_histogram(f, t, out);
        else if (t->labels)
            tg_buf_printf(out, "%s{%s} %.17g\n", f->name, t->labels, tg_stat_value(t));
        else
            tg_buf_printf(out, "%s %.17g\n", f->name, tg_stat_value(t));
    }
}

void tg_stats_write(tg_stats *s, tg_buf *out) {
    pthread_mutex_lock(&s->lock);
    for (const family *f = s->first; f; f = f->next) write_family(f, out);
    pthread_mutex_unlock(&s->lock);
}
