/* pytorch_model.bin: what torch.save wrote of a state dict, as a zip archive (torch 1.6 and later) or as pickles with the storages behind them.
 * Executes nothing (pickle.h). Contiguous tensors stay where the file is mapped; transposed or sliced ones get strides. The checksums that
 * an archive has of them become seals (stored.h), looked at when they are read. */
#ifndef TG_NN_TORCH_FILE_H
#define TG_NN_TORCH_FILE_H

#include "common/nn/stored.h"

/* Whether the bytes begin as one of the two formats does. */
bool tg_torch_file_is(const unsigned char *bytes, size_t len);
/* The bytes are borrowed until close; `name` stands for the file in messages. TG_DATA: a broken or hostile file, naming what is
 * wrong; a pickle opcode or Python name outside the list, naming it; a storage beyond the file; a value that is no tensor.
 * Memory is bounded by a small multiple of the pickle's length. */
tg_status tg_torch_file_open_memory(tg_tensor_file *f, const char *name, const unsigned char *bytes,
                                    size_t len, tg_error *err) TG_MUST_CHECK;

#endif
