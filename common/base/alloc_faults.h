/* A test hook beside those of alloc.h: memory that stays bad. */
#ifndef TG_BASE_ALLOC_FAULTS_H
#define TG_BASE_ALLOC_FAULTS_H

#include <stdint.h>

/* Every k-th allocation fails from now on, those of all threads counted together; 0: none (the default). Which one of each k
 * varies, so that a call that is made again does not meet the same fate for ever. */
void tg_alloc_fail_every(int64_t k);

#endif
