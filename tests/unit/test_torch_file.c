/* pytorch_model.bin: what torch.save wrote (tests/oracle/gen_torch.py) reads as torch reads it, and a table of hostile files is refused, each by
 * name. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/nn/model.h"
#include "common/nn/safetensors.h"
#include "common/nn/torch/torch_file.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static tg_error err;

static const char *golden(const char *name, const char *ending) {
    char path[200];
    snprintf(path, sizeof path, "golden/torch/%s.%s", name, ending);
    return tg_test_path(path);
}

/* The elements in order, as they are stored. */
static unsigned char *elements(const tg_st_tensor *t) {
    unsigned char *x = malloc(t->bytes + 1);
    CHECK_OK(tg_st_read(t, 0, t->count, t->dtype, x, &err));
    /* in two parts, split anywhere, they are the same */
    unsigned char *y = malloc(t->bytes + 1);
    size_t half = t->count / 3, size = tg_dtype_bytes(t->dtype);
    CHECK_OK(tg_st_read(t, 0, half, t->dtype, y, &err));
    CHECK_OK(tg_st_read(t, half, t->count - half, t->dtype, y + half * size, &err));
    CHECK(!memcmp(x, y, t->bytes));
    free(y);
    return x;
}

static void check_same(const char *table, const tg_st_tensor *a, const tg_st_tensor *b) {
    if (!tg_check(a != NULL, __FILE__, __LINE__, "%s: no tensor %s", table, b->name)) return;
    bool same = a->dtype == b->dtype && a->ndim == b->ndim && a->count == b->count;
    for (int d = 0; d < b->ndim && same; d++) same = a->shape[d] == b->shape[d];
    if (same) {
        unsigned char *x = elements(a);
        same = !memcmp(x, b->data, b->bytes);
        free(x);
    }
    tg_check(same, __FILE__, __LINE__, "%s: tensor %s differs", table, b->name);
}

TEST(state_dicts_read_as_torch_reads_them) {
    static const char *const names[] = {"zip",    "old",        "protocol4", "zip64",
                                        "module", "module_old", "ordered",   "none",
                                        "noted",  "noted_old",  "python2",   "python2_old"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tg_tensor_file f, want;
        REQUIRE_OK(tg_safetensors_open(&want, golden(names[i], "safetensors"), &err));
        tg_status st = tg_tensor_file_open(&f, golden(names[i], "bin"), &err);
        tg_check(st == TG_OK, __FILE__, __LINE__, "%s: %s", names[i], err.msg);
        CHECK_EQ(f.n, want.n);
        for (size_t k = 0; k < want.n; k++)
            check_same(names[i], tg_tensor_file_find(&f, want.tensors[k].name), &want.tensors[k]);
        tg_tensor_file_close(&f);
        tg_safetensors_close(&want);
    }
}

TEST(contiguous_views_stay_in_the_map_and_shared_storages_are_one) {
    tg_tensor_file f;
    REQUIRE_OK(tg_tensor_file_open(&f, golden("zip", "bin"), &err));
    const tg_st_tensor *whole = tg_tensor_file_find(&f, "whole"),
                       *same = tg_tensor_file_find(&f, "same"),
                       *rows = tg_tensor_file_find(&f, "rows"),
                       *turned = tg_tensor_file_find(&f, "turned"),
                       *ids = tg_tensor_file_find(&f, "position_ids");
    REQUIRE(whole && same && rows && turned && ids);
    CHECK(whole->data == same->data && turned->data == whole->data);
    CHECK(rows->data == whole->data + 10 * sizeof(float));
    CHECK(!whole->strided && !rows->strided && turned->strided && !ids->strided);
    CHECK(whole->data > f.map.data && whole->data < f.map.data + f.map.len);
    tg_tensor_file_close(&f);
}

TEST(hostile_files_are_refused_with_the_reason) {
    static const struct {
        const char *name, *says;
    } table[] = {
        {"runs", "posix.system"},
        {"runs_old", "posix.system"},
        {"inst", "opcode INST (0x69)"},
        {"obj", "os.system"},
        {"ext", "opcode EXT1"},
        {"unknown", "opcode unknown (0xee)"},
        {"wrong_type", ": \"w\": pickle byte 56: it asks for Python's torch.ComplexFloatStorage"},
        {"sparse", ": \"w\": pickle byte"},
        {"quantized_old", "torch._utils._rebuild_qtensor"},
        {"quantized_old", ": \"w\": pickle byte"},
        {"not_a_table", "found a list"},
        {"not_a_tensor", "\"w\": expected a tensor, found an integer"},
        {"huge_shape", "tensor \"w\": its shape and strides reach beyond"},
        {"huge_storage", "storage \"0\" is larger than its entry"},
        {"repeats_without_end", "reach beyond its storage of 6"},
        {"offset", "reach beyond"},
        {"stride", "reach beyond"},
        {"negated", "marked as the negative"},
        {"few_entries", "more entries than it says"},
        {"two_lines", "tensor \"w?x?[2J\": its shape"},
        {"negative", "strides are not as they should be"},
        {"short_entry", "larger than its entry"},
        {"no_storage", "storage \"0\" is not in the archive"},
        {"no_pickle", "no data.pkl"},
        {"two_tables", "two tables in the archive, \"a/data.pkl\" and \"x/data.pkl\""},
        {"memo", "memo index"},
        {"marks", "more memory"},
        {"nested", "more memory"},
        {"lists", "more memory"},
        {"long_text", "the file ends inside it"},
        {"no_stop", "the file ends inside it"},
        {"empty_stack", "the stack is empty"},
        {"two_values", "other than one value"},
        {"twice", "tensor \"w\" occurs twice"},
        {"compressed", "is compressed"},
        {"overlap", "\"x/data/0\" overlaps another"},
        {"cut", "cut off?"},
        {"big_endian", "expected little"},
        {"sized_beyond", "lies outside the file"},
        {"old_cut", "is larger than the file"},
        {"long_name", "has too long a name"},
        {"names_again", "more tensors than a pickle"},
        {"names_twice", "occur twice"},
        {"long_key", "has too long a name"},
        {"many_marks", "marked as the negative"},
        {"other_type", "of another type than torch.Tensor"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char name[100];
        snprintf(name, sizeof name, "hostile_%s", table[i].name);
        tg_tensor_file f;
        tg_status st = tg_tensor_file_open(&f, golden(name, "bin"), &err);
        tg_check(st == TG_DATA || st == TG_UNSUPPORTED, __FILE__, __LINE__, "%s: status %s",
                 table[i].name, tg_status_name(st));
        tg_check(strstr(err.msg, table[i].says) && strstr(err.msg, name), __FILE__, __LINE__,
                 "%s: no \"%s\" in: %s", table[i].name, table[i].says, err.msg);
        tg_tensor_file_close(&f);
    }
}

TEST(a_file_cut_anywhere_is_refused) {
    static const char *const names[] = {"zip", "old", "zip64", "module_old"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tg_buf text = {0};
        REQUIRE_OK(tg_file_read(golden(names[i], "bin"), 1 << 20, &text, &err));
        for (size_t len = 3; len < text.len; len++) {
            unsigned char *copy = malloc(len);
            memcpy(copy, text.data, len);
            tg_tensor_file f;
            tg_status st = tg_torch_file_open_memory(&f, "cut", copy, len, &err);
            tg_check(st == TG_DATA, __FILE__, __LINE__, "%s cut to %zu: %s", names[i], len,
                     tg_status_name(st));
            tg_tensor_file_close(&f);
            free(copy);
        }
        tg_buf_fini(&text);
    }
}

TEST(model_folders_open_from_pytorch_model_bin) {
    tg_backend *be = NULL;
    tg_model *want = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    REQUIRE_OK(tg_model_open(&want, be, tg_test_path("golden/families/opt"), 0, 1, &err));
    static const char *const folders[] = {"golden/torch/opt_bin", "golden/torch/opt_shards"};
    for (size_t i = 0; i < 2; i++) {
        tg_model *m = NULL;
        CHECK_OK(tg_model_open(&m, be, tg_test_path(folders[i]), 0, 1, &err));
        if (m) CHECK(!memcmp(m->data, want->data, want->params.total * sizeof(float)));
        tg_model_destroy(&m);
    }
    tg_model_destroy(&want);
    tg_backend_close(&be);
}

/* Golden file `name` with another byte at the n-th byte of `of`, as the path of a new file. */
static const char *damaged(const char *name, const char *of, size_t n, const char *as) {
    static char path[300];
    tg_buf text = {0};
    CHECK_OK(tg_file_read(golden(name, "bin"), 1 << 20, &text, &err));
    char *at = memmem(text.data, text.len, of, strlen(of));
    if (CHECK(at != NULL)) at[n] ^= 1;
    snprintf(path, sizeof path, "%s/%s", tg_test_tmpdir(), as);
    CHECK_OK(tg_file_write_atomic(path, text.data, text.len, &err));
    tg_buf_fini(&text);
    return path;
}

TEST(a_damaged_byte_is_seen_where_the_archive_has_a_checksum) {
    tg_tensor_file f;
    const char *path = damaged("zip", "data.pkl", 120, "table.bin");
    CHECK_EQ(tg_tensor_file_open(&f, path, &err), TG_DATA);
    CHECK(strstr(err.msg, "table.bin: data.pkl is not as it was saved"));

    path = damaged("zip", "archive/data/12", 100, "whole.bin"); /* of a storage of 120 bytes */
    REQUIRE_OK(tg_tensor_file_open(&f, path, &err));
    size_t bad = 0;
    for (size_t i = 0; i < f.n; i++)
        bad += tg_tensor_file_check_seal(&f, &f.tensors[i], path, &err) != TG_OK;
    CHECK_EQ(bad, 7); /* all the views of it, and no other */
    CHECK(strstr(err.msg, "whole.bin: tensor \"") && strstr(err.msg, "damaged"));
    tg_tensor_file_close(&f);

    static const char *const silent[] = {"zip", "zip64", "old"}; /* right, or none is known */
    for (size_t i = 0; i < 3; i++) {
        REQUIRE_OK(tg_tensor_file_open(&f, golden(silent[i], "bin"), &err));
        for (size_t k = 0; k < f.n; k++)
            CHECK_OK(tg_tensor_file_check_seal(&f, &f.tensors[k], silent[i], &err));
        tg_tensor_file_close(&f);
    }
}

TEST(a_small_file_makes_no_large_model) {
    tg_backend *be = NULL;
    tg_model *m = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    CHECK_EQ(tg_model_open(&m, be, tg_test_path("golden/torch/hostile_shared"), 0, 1, &err),
             TG_DATA);
    CHECK(strstr(err.msg, "share the"));
    CHECK(be->bytes_peak < 1 << 20);
    tg_backend_close(&be);
}

TEST(out_of_memory_is_reported) {
    for (const char *const *name = (const char *const[]){"zip", "old", NULL}; *name; name++) {
        for (int64_t n = 0;; n++) {
            tg_tensor_file f;
            tg_alloc_fail_after(n);
            tg_status st = tg_tensor_file_open(&f, golden(*name, "bin"), &err);
            tg_alloc_fail_after(-1);
            tg_tensor_file_close(&f);
            if (st == TG_OK) break;
            if (!CHECK(st == TG_NOMEM)) break;
        }
    }
}

TEST_MAIN
