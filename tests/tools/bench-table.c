/* bench-table RESULTS.jsonl: sets each benchmark's lines side by side: ours, every peer's, how many times faster than the best of them we
 * are, and the share of the machine's limit (FMA for flops, memory bandwidth for bytes, whichever takes longer), all from one run. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 4096 };

typedef struct line {
    const char *name, *who;
    double seconds, flops, bytes, peak_mb;
} line;

typedef struct table {
    json_t *objects[MAX_LINES]; /* own the strings of lines */
    line lines[MAX_LINES];
    int n_objects, n_lines;
    double gflops, gb_per_s; /* the machine's, with all threads; 0: not measured */
} table;

static double number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : 0;
}

/* Keeps the widest measurement: the limit with all threads. */
static void take_limit(table *t, const json_t *o) {
    if (number(o, "gflops") > t->gflops) t->gflops = number(o, "gflops");
    if (number(o, "gb_per_s") > t->gb_per_s) t->gb_per_s = number(o, "gb_per_s");
}

static void take(table *t, json_t *o) {
    const char *name = json_string_value(json_object_get(o, "bench"));
    const char *who = json_string_value(json_object_get(o, "who"));
    if (name && !strcmp(name, "limits")) take_limit(t, o);
    if (!name || number(o, "seconds") <= 0 || t->n_lines == MAX_LINES) {
        json_decref(o);
        return;
    }
    t->objects[t->n_objects++] = o;
    t->lines[t->n_lines++] = (line){name,
                                    who ? who : "textgen",
                                    number(o, "seconds"),
                                    number(o, "flops"),
                                    number(o, "bytes"),
                                    number(o, "peak_mb")};
}

static double limit_seconds(const table *t, const line *l) {
    double fma = t->gflops > 0 ? l->flops / (t->gflops * 1e9) : 0;
    double memory = t->gb_per_s > 0 ? l->bytes / (t->gb_per_s * 1e9) : 0;
    return fma > memory ? fma : memory;
}

static void print_time(double seconds) {
    if (seconds >= 10)
        printf("%9.1f s ", seconds);
    else if (seconds >= 1e-2)
        printf("%9.1f ms", seconds * 1e3);
    else
        printf("%9.2f us", seconds * 1e6);
}

/* Ours, in whatever way it was run ("textgen, bf16 weights"). */
static bool is_ours(const line *l) {
    return !strncmp(l->who, "textgen", strlen("textgen"));
}

/* The fastest peer's line of that name; NULL: none. */
static const line *best_peer(const table *t, const char *name) {
    const line *best = NULL;
    for (int i = 0; i < t->n_lines; i++) {
        const line *l = &t->lines[i];
        if (!strcmp(l->name, name) && !is_ours(l) && (!best || l->seconds < best->seconds))
            best = l;
    }
    return best;
}

static void print_line(const table *t, const line *l, bool first) {
    printf("%-36s %-26s ", first ? l->name : "", l->who);
    print_time(l->seconds);
    double limit = limit_seconds(t, l);
    if (limit > 0)
        printf("  %5.1f %%", 100 * limit / l->seconds);
    else
        printf("  %7s", "");
    if (l->peak_mb > 0)
        printf("  %8.0f MB", l->peak_mb);
    else
        printf("  %11s", "");
    const line *peer = best_peer(t, l->name);
    if (is_ours(l) && peer) {
        printf("  %6.2f times %s", peer->seconds / l->seconds, peer->who);
        if (l->peak_mb > 0 && peer->peak_mb > 0)
            printf(", %.2f of its memory", l->peak_mb / peer->peak_mb);
    }
    printf("\n");
}

static void print_group(const table *t, const char *name) {
    bool first = true;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < t->n_lines; i++) {
            const line *l = &t->lines[i];
            if (strcmp(l->name, name) || is_ours(l) == (pass == 1)) continue;
            print_line(t, l, first);
            first = false;
        }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: bench-table RESULTS.jsonl\n");
        return 64;
    }
    FILE *f = fopen(argv[1], "r");
    if (!f) {
        perror(argv[1]);
        return 66;
    }
    table *t = calloc(1, sizeof *t);
    if (!t) return 71;
    char *text = NULL;
    size_t capacity = 0;
    while (getline(&text, &capacity, f) > 0 && t->n_objects < MAX_LINES) {
        json_t *o = json_loads(text, 0, NULL);
        if (o) take(t, o);
    }
    free(text);
    fclose(f);
    if (t->gflops > 0)
        printf("limits: %.0f GFLOP/s of FMA, %.1f GB/s of memory\n", t->gflops, t->gb_per_s);
    printf("%-36s %-26s %11s  %7s  %11s\n", "", "", "time", "limit", "peak");
    for (int i = 0; i < t->n_lines; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++) seen = !strcmp(t->lines[k].name, t->lines[i].name);
        if (!seen) print_group(t, t->lines[i].name);
    }
    for (int i = 0; i < t->n_objects; i++) json_decref(t->objects[i]);
    free(t);
    return 0;
}
