/* Inside checkpoints: the tensors of a network or of one optimizer moment as a safetensors file,
 * with a checksum of the whole file. */
#ifndef TG_TRAIN_CHECKPOINT_NETS_H
#define TG_TRAIN_CHECKPOINT_NETS_H

#include "learner/train/checkpoint.h"

/* File i of a checkpoint (0 .. tgi_net_files - 1). */
typedef struct tgi_net_file {
    char name[64]; /* without the folder */
    tg_model *model;
    const tg_optim *optim;
    int net, moment; /* moment -1: the parameters */
} tgi_net_file;
int tgi_net_files(const tg_checkpoint_nets *nets);
tgi_net_file tgi_net_file_at(const tg_checkpoint_nets *nets, int i);

tg_status tgi_net_write(const char *folder, const tgi_net_file *f, uint32_t *crc,
                        tg_error *err) TG_MUST_CHECK;
/* TG_DATA: not there, or not what was written. */
tg_status tgi_net_verify(const char *folder, const tgi_net_file *f, uint32_t crc,
                         tg_error *err) TG_MUST_CHECK;
tg_status tgi_net_read(const char *folder, const tgi_net_file *f, tg_error *err) TG_MUST_CHECK;

#endif
