/*
 * Simulates a power cut, which leaves only fsynced data. Each successful fsync or fdatasync of a file below
 * TAPE_CHAOS_MATCH copies the file, as it is at that moment, into the folder TAPE_CHAOS_SHADOW. After the processes were
 * killed the copies are restored, and every unsynced write is lost. A copy appears by rename, so that a process that is
 * killed while copying leaves the previous copy. Removing and renaming a file take effect at once.
 *
 *   cc -shared -fPIC -O2 -o unsynced.so unsynced.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Path of the copy of a file; 0: the file is not below TAPE_CHAOS_MATCH. `path` must be absolute. */
static int copy_of(const char *path, char *copy, size_t size) {
  const char *match = getenv("TAPE_CHAOS_MATCH"), *shadow = getenv("TAPE_CHAOS_SHADOW");
  if (match == NULL || shadow == NULL || strncmp(path, match, strlen(match)) != 0) return 0;
  int start = snprintf(copy, size, "%s/", shadow);
  snprintf(copy + start, size - start, "%s", path);
  for (char *c = copy + start; *c; c++) if (*c == '/') *c = '%';
  return 1;
}

static int copy_at(const char *path, char *copy, size_t size) {
  char *whole = realpath(path, NULL);
  int tracked = whole != NULL && copy_of(whole, copy, size);
  free(whole);
  return tracked;
}

static void keep(int fd) {
  char link[64], path[2048], copy[4096], draft[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || !copy_of(path, copy, sizeof copy)) return;
  snprintf(draft, sizeof draft, "%s/.%d.%d", getenv("TAPE_CHAOS_SHADOW"), getpid(), fd);
  /* Read through the given descriptor: opening and closing the file would drop the locks that SQLite holds on it. */
  int out = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  size_t size = 1 << 18;
  char *block = malloc(size);
  ssize_t got = -1;
  off_t at = 0;
  if (out >= 0 && block != NULL)
    while ((got = pread(fd, block, size, at)) > 0) {
      if (write(out, block, got) != got) { got = -1; break; }
      at += got;
    }
  free(block);
  if (out >= 0) close(out);
  if (got == 0) renameat(AT_FDCWD, draft, AT_FDCWD, copy);
  else unlinkat(AT_FDCWD, draft, 0);
}

static int synced(const char *name, int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int result = real(fd), error = errno;
  if (result == 0) keep(fd);
  errno = error;
  return result;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }

int unlink(const char *path) {
  char copy[4096];
  int tracked = copy_at(path, copy, sizeof copy);
  int result = unlinkat(AT_FDCWD, path, 0), error = errno;
  if (result == 0 && tracked) unlinkat(AT_FDCWD, copy, 0);
  errno = error;
  return result;
}

int rename(const char *from, const char *to) {
  char copy[4096], place[4096];
  int tracked = copy_at(from, copy, sizeof copy);
  int result = renameat(AT_FDCWD, from, AT_FDCWD, to), error = errno;
  if (result == 0 && tracked && copy_at(to, place, sizeof place) && renameat(AT_FDCWD, copy, AT_FDCWD, place) != 0)
    unlinkat(AT_FDCWD, place, 0);
  errno = error;
  return result;
}
