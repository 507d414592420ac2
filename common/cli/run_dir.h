/* The folder of a run: its name, whether one is there already, and the socket folder that goes with it. */
#ifndef TG_CLI_RUN_DIR_H
#define TG_CLI_RUN_DIR_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>

/* "runs/<config stem><suffix>-<YYYYmmdd-HHMMSS>", with "-2", "-3" … when that exists. Returns owned text (tg_free). */
tg_status tg_run_dir_name(const char *config, const char *suffix, char **dir,
                          tg_error *err) TG_MUST_CHECK;

/* True when the folder exists and is not empty. */
bool tg_run_dir_in_use(const char *dir);

/* True when a checkpoint in it is whole. */
bool tg_run_dir_has_checkpoint(const char *dir);

/* Makes the folder and locks it for as long as *fd stays open (the caller closes it): two processes
 * in one folder would ruin each other's files. TG_BUSY: another one has it. */
tg_status tg_run_dir_lock(const char *dir, int *fd, tg_error *err) TG_MUST_CHECK;

/* Writes config.json atomically. An equal file is left alone; *replaced gets the text of another that
 * was there (the caller frees it), and stays empty when there was none. */
tg_status tg_run_dir_write_config(const char *dir, const tg_buf *config, tg_buf *replaced,
                                  tg_error *err) TG_MUST_CHECK;

/* Removes the folder when it holds a config and logs only: a run that was refused leaves nothing behind. */
void tg_run_dir_discard(const char *dir);

/* A private folder (mode 0700) for sockets, below /tmp: socket paths are limited to 107 bytes.
 * Returns owned text; the folder counts as in use while *lock is open. Also removes folders that
 * killed processes left there. */
tg_status tg_socket_dir_create(char **dir, int *lock, tg_error *err) TG_MUST_CHECK;

#endif
