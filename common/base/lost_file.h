/* A mapped file may be cut, or its disk may fail, while it is read: a signal then ends the process where it stands. */
#ifndef TG_BASE_LOST_FILE_H
#define TG_BASE_LOST_FILE_H

/* From now on the end says which file it was, on standard error, and calls `die` with the exit code of TG_IO: _exit, given by main. For the
 * whole process; once. */
void tg_lost_file_watch(void (*die)(int exit_code));

#endif
