// A file system for SQLite that passes everything on to the real one, and counts what changes a file. The same for the files of attachments, by
// the functions of the C library that change them.
#include "KillingDisk.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long last;
static atomic_long steps;
static sqlite3_vfs *real_disk;
static sqlite3_vfs disk;

struct file {
  sqlite3_file base;
  sqlite3_file *real;
};

static int is_last(void) { return atomic_fetch_add(&steps, 1) + 1 == last; }

static void end(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

#define REAL(file) (((struct file *)(file))->real)
#define CALL(file, method, ...) REAL(file)->pMethods->method(REAL(file), ##__VA_ARGS__)

static int close_file(sqlite3_file *file) { return CALL(file, xClose); }
static int read_file(sqlite3_file *file, void *to, int count, sqlite3_int64 at) { return CALL(file, xRead, to, count, at); }
static int write_file(sqlite3_file *file, const void *from, int count, sqlite3_int64 at) {
  if (is_last()) {
    CALL(file, xWrite, from, count / 2, at);
    end();
  }
  return CALL(file, xWrite, from, count, at);
}
static int truncate_file(sqlite3_file *file, sqlite3_int64 size) {
  if (is_last()) end();
  return CALL(file, xTruncate, size);
}
static int sync_file(sqlite3_file *file, int flags) {
  if (is_last()) end();
  return CALL(file, xSync, flags);
}
static int file_size(sqlite3_file *file, sqlite3_int64 *size) { return CALL(file, xFileSize, size); }
static int lock_file(sqlite3_file *file, int level) { return CALL(file, xLock, level); }
static int unlock_file(sqlite3_file *file, int level) { return CALL(file, xUnlock, level); }
static int check_lock(sqlite3_file *file, int *result) { return CALL(file, xCheckReservedLock, result); }
static int control(sqlite3_file *file, int operation, void *argument) { return CALL(file, xFileControl, operation, argument); }
static int sector_size(sqlite3_file *file) { return CALL(file, xSectorSize); }
static int characteristics(sqlite3_file *file) { return CALL(file, xDeviceCharacteristics); }
static int map_shared(sqlite3_file *file, int page, int size, int extend, void volatile **to) {
  return CALL(file, xShmMap, page, size, extend, to);
}
static int lock_shared(sqlite3_file *file, int offset, int count, int flags) { return CALL(file, xShmLock, offset, count, flags); }
static void shared_barrier(sqlite3_file *file) { CALL(file, xShmBarrier); }
static int unmap_shared(sqlite3_file *file, int removes) { return CALL(file, xShmUnmap, removes); }

static const sqlite3_io_methods methods = {
  2, close_file, read_file, write_file, truncate_file, sync_file, file_size, lock_file, unlock_file, check_lock, control, sector_size,
  characteristics, map_shared, lock_shared, shared_barrier, unmap_shared,
};

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *opened) {
  struct file *mine = (struct file *)file;
  mine->real = (sqlite3_file *)(mine + 1);
  if (is_last()) end();
  int result = real_disk->xOpen(real_disk, name, mine->real, flags, opened);
  mine->base.pMethods = mine->real->pMethods ? &methods : NULL;
  return result;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs) {
  if (is_last()) end();
  return real_disk->xDelete(real_disk, name, syncs);
}

void killing_disk_begin(long step) {
  last = step;
  real_disk = sqlite3_vfs_find(NULL);
  disk = *real_disk;
  disk.zName = "killing";
  disk.szOsFile = (int)sizeof(struct file) + real_disk->szOsFile;
  disk.xOpen = open_file;
  disk.xDelete = delete_file;
  sqlite3_vfs_register(&disk, 1);
}

long killing_disk_steps(void) { return atomic_load(&steps); }

// The folder of attachments, and the program's own file. The functions stand in the program, so they take the place of the library's.

static long folder_last;
static int folder_is_watched;
static enum killing_fault folder_fault;
static atomic_long folder_steps;
// The counter of the folder's steps: its own, or the database's.
static atomic_long *folder_counter = &folder_steps;

void killing_folder_begin(long step, enum killing_fault fault) {
  folder_last = step;
  folder_fault = fault;
  folder_is_watched = 1;
}

long killing_folder_steps(void) { return atomic_load(&folder_steps); }

void killing_device_begin(long step) {
  folder_counter = &steps;
  killing_folder_begin(step, KILLING_KILL);
  killing_disk_begin(step);
}

static int is_watched(const char *path) { return folder_is_watched && (strstr(path, "-attachments") || strstr(path, "-photo")); }

static int is_watched_file(int file) {
  char link[64], path[4096];
  if (!folder_is_watched) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_watched(path);
}

// Whether the step finds a full disk; the last step kills.
static int fails(void) {
  long step = atomic_fetch_add(folder_counter, 1) + 1;
  if (folder_last == 0 || step < folder_last || (step > folder_last && folder_fault != KILLING_FULL)) return 0;
  if (folder_fault == KILLING_KILL) end();
  errno = ENOSPC;
  return 1;
}

ssize_t write(int file, const void *from, size_t count) {
  if (is_watched_file(file)) {
    // A write is half done when the disk is full or the process is killed.
    if (folder_last != 0 && atomic_load(folder_counter) + 1 == folder_last) syscall(SYS_write, file, from, count / 2);
    if (fails()) return -1;
  }
  return syscall(SYS_write, file, from, count);
}

int fsync(int file) { return is_watched_file(file) && fails() ? -1 : (int)syscall(SYS_fsync, file); }
int mkdir(const char *path, mode_t mode) { return is_watched(path) && fails() ? -1 : (int)syscall(SYS_mkdir, path, mode); }
int rename(const char *from, const char *to) { return is_watched(to) && fails() ? -1 : (int)syscall(SYS_rename, from, to); }

// A full disk lets files be removed.
int unlink(const char *path) {
  if (is_watched(path) && folder_fault == KILLING_KILL) fails();
  return (int)syscall(SYS_unlink, path);
}
