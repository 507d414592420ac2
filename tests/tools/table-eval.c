/* table-eval: the rows of data files as JSON lines, for comparisons with other readers.
 *
 *   table-eval [--columns A,B] FILE…          by the file's name: .jsonl .csv .tsv .parquet
 *   table-eval --literal                      a Python or JSON value on each line of stdin
 *
 * A file that cannot be opened or a row that cannot be read is {"error": …} in its place. */
#include "common/base/alloc.h"
#include "common/config/json.h"
#include "env-server/datapool/pyliteral.h"
#include "env-server/datapool/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 64 };

static void put_error(const tg_error *err) {
    tg_buf out = {0};
    tg_json_string(&out, err->msg, strlen(err->msg));
    printf("{\"error\": %s}\n", out.data ? out.data : "\"\"");
    tg_buf_fini(&out);
}

static void put_value(json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    puts(text ? text : "{\"error\": \"not UTF-8\"}");
    free(text);
    json_decref(value);
}

static void show(const char *path, const char *const *columns) {
    tg_table t;
    tg_error err = {0};
    if (tg_table_open(&t, path, columns, &err) != TG_OK) {
        put_error(&err);
        return;
    }
    for (uint64_t i = 0; i < t.count; i++) {
        json_t *row;
        if (tg_table_row(&t, i, &row, &err) == TG_OK)
            put_value(row);
        else
            put_error(&err);
    }
    tg_table_close(&t);
}

static void literals(void) {
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_t *value;
        tg_error err = {0};
        if (line[n - 1] == '\n') n--;
        if (tg_py_literal(line, (size_t)n, &value, &err) == TG_OK)
            put_value(value);
        else
            put_error(&err);
    }
    free(line);
}

int main(int argc, char **argv) {
    const char *columns[MAX_COLUMNS + 1] = {NULL};
    int first = 1;
    if (argc > 1 && !strcmp(argv[1], "--literal")) {
        literals();
        return 0;
    }
    if (argc > 2 && !strcmp(argv[1], "--columns")) {
        size_t n = 0;
        for (char *at = strtok(argv[2], ","); at && n < MAX_COLUMNS; at = strtok(NULL, ","))
            columns[n++] = at;
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: table-eval [--columns A,B] FILE...\n");
        return 64;
    }
    for (int i = first; i < argc; i++) {
        if (argc - first > 1) printf("{\"file\": %d}\n", i - first);
        show(argv[i], first == 3 ? columns : NULL);
    }
    return 0;
}
