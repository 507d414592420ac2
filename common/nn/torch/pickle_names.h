/* What pickle's opcodes are called: for messages. Private to pickle.c. */
#ifndef TG_NN_TORCH_PICKLE_NAMES_H
#define TG_NN_TORCH_PICKLE_NAMES_H

/* "INST", or NULL for a byte that is no opcode. */
const char *tg_pickle_opcode_name(unsigned char opcode);

#endif
