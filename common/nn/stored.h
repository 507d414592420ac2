/* Tensors as a file stores them, whatever its format: safetensors.h and torch/torch_file.h fill the same table, and those who
 * read weights see only this one. Data stays where the file is mapped. */
#ifndef TG_NN_STORED_H
#define TG_NN_STORED_H

#include "common/base/file.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_dtype {
    TG_F32,
    TG_F16,
    TG_BF16,
    TG_F64, /* the last one that holds fractions */
    TG_I32,
    TG_I64,
    TG_I16,
    TG_U8,
    TG_I8,
    TG_BOOL8
} tg_dtype;

const char *tg_dtype_name(tg_dtype dtype); /* as in a safetensors file: "BF16" */
size_t tg_dtype_bytes(tg_dtype dtype);
bool tg_dtype_is_float(tg_dtype dtype);

/* What a file may claim of its tensors: their dimensions, the bytes of a name, and how many there are. */
enum { TG_ST_MAX_DIMS = 8, TG_ST_MAX_NAME = 1000, TG_ST_MAX_TENSORS = 1 << 18 };

/* Bytes of which the file itself has a checksum: an entry of torch's archives. */
typedef struct tg_st_seal {
    const unsigned char *data;
    size_t bytes;
    uint32_t crc; /* CRC-32 */
    bool found_right;
} tg_st_seal;

typedef struct tg_st_tensor {
    char *name;
    tg_dtype dtype;
    int ndim;
    int64_t shape[TG_ST_MAX_DIMS];
    size_t count;              /* elements */
    const unsigned char *data; /* of the first element, inside the map; aligned to nothing */
    size_t bytes;              /* count times the size of an element */
    bool strided;              /* the elements are not one after the other: stride says where, */
    int64_t stride[TG_ST_MAX_DIMS]; /* in elements */
    size_t seal; /* 1 + index of the seal of the bytes it lies in; 0: they have none */
} tg_st_tensor;

typedef struct tg_tensor_file {
    tg_filemap map;
    tg_st_tensor *tensors; /* names are distinct */
    size_t n;
    tg_st_seal *seals;
} tg_tensor_file;

/* safetensors, or what torch.save wrote: told apart by how the file begins, and by its name (*.bin) when that says nothing. */
tg_status tg_tensor_file_open(tg_tensor_file *f, const char *path, tg_error *err) TG_MUST_CHECK;
void tg_tensor_file_close(tg_tensor_file *f);
const tg_st_tensor *tg_tensor_file_find(const tg_tensor_file *f, const char *name); /* NULL: none */
/* Reads the bytes that a tensor of the file lies in, unless they were found right before. TG_DATA when their checksum is another; `file`
 * is for the message. */
tg_status tg_tensor_file_check_seal(const tg_tensor_file *f, const tg_st_tensor *t,
                                    const char *file, tg_error *err) TG_MUST_CHECK;
/* TG_DATA when a name occurs twice; `file` and `format` are for the message. */
tg_status tg_tensor_file_check_names(const tg_tensor_file *f, const char *file, const char *format,
                                     tg_error *err) TG_MUST_CHECK;

/* Elements begin .. begin + count - 1, in order, as that type: raw when it is the stored one, else both must hold fractions
 * (f32, f16, bf16 or f64 to f32, f16 or bf16; rounded to nearest, ties to even). */
tg_status tg_st_read(const tg_st_tensor *t, size_t begin, size_t count, tg_dtype as, void *out,
                     tg_error *err) TG_MUST_CHECK;
/* Converts f32, f16, bf16 or f64 to f32; out has t->count floats. */
tg_status tg_st_to_f32(const tg_st_tensor *t, float *out, tg_error *err) TG_MUST_CHECK;
/* Elements begin .. begin + count - 1 of it. */
tg_status tg_st_to_f32_part(const tg_st_tensor *t, size_t begin, size_t count, float *out,
                            tg_error *err) TG_MUST_CHECK;
/* n floats as f16 or bf16, rounded to nearest, ties to even. */
void tg_f32_to_half(tg_dtype as, const float *from, size_t n, uint16_t *out);

#endif
