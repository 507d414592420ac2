/* bench-table [--markdown] RESULTS.jsonl [PREFIX…]: a line for each case: ours, the best peer's, how many times faster we are, what the
 * machine would need at least (multiply-adds of the instructions used, or reading memory, whichever takes longer), our share of that,
 * and peak memory; all from one run. PREFIX: only cases that begin so. The limits measured several times: the highest counts. */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 4096, MAX_ISAS = 8, TEXT = 240 };

typedef struct line {
    const char *name, *who, *isa;
    double seconds, flops, bytes, first_flops, peak_mb;
} line;

typedef struct isa_limit {
    const char *isa;
    double gflops;
} isa_limit;

typedef struct table {
    json_t *objects[MAX_LINES]; /* own the strings */
    line lines[MAX_LINES];
    int n_objects, n_lines;
    isa_limit limits[MAX_ISAS]; /* with all threads */
    int n_limits, threads;
    double gb_per_s, read_gb_per_s; /* y += a x, reading; 0: not measured */
    bool markdown;
    char **prefixes;
    int n_prefixes;
} table;

static double number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : 0;
}

static const char *string(const json_t *o, const char *key, const char *otherwise) {
    const char *s = json_string_value(json_object_get(o, key));
    return s && *s ? s : otherwise;
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Ours, in whatever way it was run ("textgen, bf16 weights"). */
static bool is_ours(const line *l) {
    return !strncmp(l->who, "textgen", strlen("textgen"));
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* Lines of fewer threads come first and are replaced. */
static void take_limit(table *t, const json_t *o) {
    const int threads = (int)number(o, "threads");
    const char *isa = string(o, "isa", "");
    if (threads < t->threads) return;
    if (threads > t->threads) t->n_limits = 0, t->gb_per_s = t->read_gb_per_s = 0;
    t->threads = threads;
    t->gb_per_s = fmax(t->gb_per_s, number(o, "gb_per_s"));
    t->read_gb_per_s = fmax(t->read_gb_per_s, number(o, "read_gb_per_s"));
    int i = 0;
    while (i < t->n_limits && strcmp(t->limits[i].isa, isa)) i++;
    if (i == MAX_ISAS) return;
    if (i == t->n_limits) t->limits[t->n_limits++] = (isa_limit){isa, 0};
    if (number(o, "gflops") > t->limits[i].gflops) t->limits[i].gflops = number(o, "gflops");
}

/* Of two lines of the same case and program the faster one stays. */
static void take_line(table *t, const line *new) {
    for (int i = 0; i < t->n_lines; i++) {
        line *l = &t->lines[i];
        if (strcmp(l->name, new->name) || strcmp(l->who, new->who)) continue;
        if (new->seconds < l->seconds) *l = *new;
        return;
    }
    if (t->n_lines < MAX_LINES) t->lines[t->n_lines++] = *new;
}

static void take(table *t, const json_t *o) {
    const char *name = string(o, "bench", "");
    if (!strcmp(name, "limits")) {
        take_limit(t, o);
    } else if (*name && strcmp(name, "op") && number(o, "seconds") > 0) {
        const char *isa = ends_in(name, "_bf16") ? "avx512_bf16" : "";
        take_line(t, &(line){name, string(o, "who", "textgen"), string(o, "isa", isa),
                             number(o, "seconds"), number(o, "flops"), number(o, "bytes"),
                             number(o, "first_flops"), number(o, "peak_mb")});
    }
}

static bool read_results(table *t, const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) return false;
    char *text = NULL;
    size_t capacity = 0;
    while (t->n_objects < MAX_LINES && getline(&text, &capacity, f) > 0) {
        json_t *o = json_loads(text, 0, NULL);
        if (!o) continue;
        t->objects[t->n_objects++] = o;
        take(t, o);
    }
    free(text);
    fclose(f);
    return true;
}

/* ---- what a line means ------------------------------------------------------------------------ */

/* Of these instructions, or of the best there are for f32, which are measured first. */
static double gflops_of(const table *t, const char *isa) {
    for (int i = 0; i < t->n_limits; i++)
        if (!strcmp(t->limits[i].isa, isa)) return t->limits[i].gflops;
    return t->n_limits ? t->limits[0].gflops : 0;
}

static double limit_seconds(const table *t, const line *l) {
    const double gflops = gflops_of(t, l->isa);
    const double first = gflops > 0 ? l->first_flops / (gflops * 1e9) : 0;
    const double rest = gflops > 0 ? (l->flops - l->first_flops) / (gflops * 1e9) : 0;
    const double memory = t->read_gb_per_s > 0 ? l->bytes / (t->read_gb_per_s * 1e9) : 0;
    return first + fmax(rest, memory);
}

/* A peer may answer a bf16 case in f32: whoever has both takes the faster. */
static bool is_peer_of(const line *peer, const char *name) {
    const size_t n = strlen(name) - (ends_in(name, "_bf16") ? strlen("_bf16") : 0);
    if (is_ours(peer)) return false;
    return !strcmp(peer->name, name) || (strlen(peer->name) == n && !strncmp(peer->name, name, n));
}

static const line *best_peer(const table *t, const char *name) {
    const line *best = NULL;
    for (int i = 0; i < t->n_lines; i++) {
        const line *l = &t->lines[i];
        if (is_peer_of(l, name) && (!best || l->seconds < best->seconds)) best = l;
    }
    return best;
}

static bool has_ours(const table *t, const char *name) {
    for (int i = 0; i < t->n_lines; i++)
        if (is_ours(&t->lines[i]) && !strcmp(t->lines[i].name, name)) return true;
    return false;
}

static bool wanted(const table *t, const char *name) {
    for (int i = 0; i < t->n_prefixes; i++)
        if (!strncmp(name, t->prefixes[i], strlen(t->prefixes[i]))) return true;
    return t->n_prefixes == 0;
}

/* ---- printing --------------------------------------------------------------------------------- */

/* Three digits are what such a measurement is good for. */
static const char *time_text(double seconds, char *out) {
    const double scale[] = {1, 1e3, 1e6, 1e9};
    const char *const unit[] = {"s", "ms", "µs", "ns"};
    int k = 0;
    while (k < 3 && seconds * scale[k] < 1) k++;
    const double x = seconds * scale[k];
    snprintf(out, TEXT, "%.*f %s", x >= 100 ? 0 : x >= 10 ? 1 : 2, x, unit[k]);
    return out;
}

static const char *memory_text(double mb, char *out) {
    if (mb <= 0) return "";
    snprintf(out, TEXT, mb >= 1000 ? "%.2f GB" : "%.0f MB", mb >= 1000 ? mb / 1e3 : mb);
    return out;
}

enum { CASE, OURS, PEER, WHO, TIMES, LIMIT, SHARE, PEAK, PEER_PEAK, OTHERS, COLUMNS };

/* Bytes that begin a character take a place. */
static int places(const char *s) {
    int n = 0;
    for (; *s; s++) n += (*s & 0xc0) != 0x80;
    return n;
}

static void print_row(const table *t, char cells[COLUMNS][TEXT]) {
    static const int widths[COLUMNS] = {52, 9, 9, 32, 6, 9, 6, 9, 16, 0};
    for (int i = 0; i < COLUMNS; i++) {
        const bool left = i == CASE || i == WHO || i == OTHERS;
        const int pad = t->markdown ? 0 : widths[i] - places(cells[i]);
        if (t->markdown) printf("| ");
        if (!left && pad > 0) printf("%*s", pad, "");
        printf("%s", cells[i]);
        if (left && pad > 0 && i != OTHERS) printf("%*s", pad, "");
        printf(t->markdown || i + 1 < COLUMNS ? " " : "");
    }
    printf(t->markdown ? "|\n" : "\n");
}

static void append(char *cell, const char *text) {
    snprintf(cell + strlen(cell), TEXT - strlen(cell), "%s", text);
}

static void print_line(const table *t, const line *l) {
    char cells[COLUMNS][TEXT] = {{0}}, text[TEXT];
    const line *peer = best_peer(t, l->name);
    const bool ours = is_ours(l);
    const double limit = ours ? limit_seconds(t, l) : 0;
    append(cells[CASE], l->name);
    if (ours && l->who[strlen("textgen")]) append(cells[CASE], l->who + strlen("textgen"));
    if (ours) append(cells[OURS], time_text(l->seconds, text));
    if (peer) {
        append(cells[PEER], time_text(peer->seconds, text));
        append(cells[WHO], peer->who);
        if (ours) snprintf(cells[TIMES], TEXT, "%.2f", peer->seconds / l->seconds);
        append(cells[PEER_PEAK], memory_text(peer->peak_mb, text));
        if (ours && peer->peak_mb > 0 && l->peak_mb > 0) {
            snprintf(text, sizeof text, " (%.2f)", l->peak_mb / peer->peak_mb);
            append(cells[PEER_PEAK], text);
        }
    }
    if (limit > 0) {
        append(cells[LIMIT], time_text(limit, text));
        snprintf(cells[SHARE], TEXT, "%.0f %%", 100 * limit / l->seconds);
    }
    if (ours) append(cells[PEAK], memory_text(l->peak_mb, text));
    for (int i = 0; i < t->n_lines; i++) {
        const line *other = &t->lines[i];
        if (other == peer || is_ours(other) || strcmp(other->name, l->name)) continue;
        append(cells[OTHERS], cells[OTHERS][0] ? ", " : "");
        append(cells[OTHERS], other->who);
        append(cells[OTHERS], " ");
        append(cells[OTHERS], time_text(other->seconds, text));
    }
    print_row(t, cells);
}

static void print_limits(const table *t) {
    if (!t->n_limits) return;
    printf("Limits of this machine, %d threads, in this run: ", t->threads);
    for (int i = 0; i < t->n_limits; i++)
        printf("%.0f GFLOP/s (%s), ", t->limits[i].gflops, t->limits[i].isa);
    printf("memory %.1f GB/s (y += a x), %.1f (read).\n", t->gb_per_s, t->read_gb_per_s);
    if (t->markdown) printf("\n");
}

static void print_table(const table *t) {
    char head[COLUMNS][TEXT] = {"case",  "textgen", "peer", "(the best)",  "times",
                                "limit", "share",   "peak", "peer's (of)", "other peers"};
    print_limits(t);
    print_row(t, head);
    if (t->markdown) printf("|---|--:|--:|---|--:|--:|--:|--:|--:|---|\n");
    for (int i = 0; i < t->n_lines; i++) {
        const line *l = &t->lines[i];
        if (!wanted(t, l->name)) continue;
        bool seen = false; /* the cases in the order they came, all ways of one together */
        for (int k = 0; k < i && !seen; k++) seen = !strcmp(t->lines[k].name, l->name);
        if (seen) continue;
        if (!has_ours(t, l->name)) print_line(t, l);
        for (int k = i; k < t->n_lines; k++)
            if (is_ours(&t->lines[k]) && !strcmp(t->lines[k].name, l->name))
                print_line(t, &t->lines[k]);
    }
}

int main(int argc, char **argv) {
    int first = 1;
    table *t = calloc(1, sizeof *t);
    if (!t) return 71;
    if (argc > first && !strcmp(argv[first], "--markdown")) t->markdown = true, first++;
    if (argc <= first || argv[first][0] == '-') {
        fprintf(stderr, "usage: bench-table [--markdown] RESULTS.jsonl [PREFIX…]\n");
        free(t);
        return 64;
    }
    t->prefixes = argv + first + 1;
    t->n_prefixes = argc - first - 1;
    const bool read = read_results(t, argv[first]);
    if (read)
        print_table(t);
    else
        perror(argv[first]);
    for (int i = 0; i < t->n_objects; i++) json_decref(t->objects[i]);
    free(t);
    return read ? 0 : 66;
}
