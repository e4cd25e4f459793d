/* Makes the Nth write, fsync or rename below one folder fail. Preloaded into the server. A file that both sides map
 * contains the order and the number of calls so far. Calls on sockets, pipes and other folders pass unchanged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* The same layout as in faults.rs: four 32-bit numbers. `when` is the call that fails, counted from 1; 0 means none. */
struct control { atomic_int kind; atomic_int when; atomic_int error; atomic_int seen; };
enum { WRITE = 1, SYNC = 2, RENAME = 3 };

static struct control *control;
static const char *folder;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CONTROL");
    folder = getenv("FAULTS_FOLDER");
    int fd = path && folder ? open(path, O_RDWR) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED) control = map;
}

static int below(const char *path) { return strncmp(path, folder, strlen(folder)) == 0; }

/* Returns true if this call must fail, and then sets errno. */
static int due(int kind, const char *path) {
    if (!below(path) || atomic_fetch_add(&control->seen, 1) + 1 != atomic_load(&control->when)) return 0;
    errno = atomic_load(&control->error);
    return 1;
}

static int due_fd(int kind, int fd) {
    if (!control || atomic_load(&control->kind) != kind) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return due(kind, path);
}

static int due_path(const char *path) {
    return control && atomic_load(&control->kind) == RENAME && due(RENAME, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) { return due_fd(WRITE, fd) ? -1 : REAL(write)(fd, bytes, count); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return due_fd(WRITE, fd) ? -1 : REAL(writev)(fd, parts, count); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return due_fd(WRITE, fd) ? -1 : REAL(pwrite)(fd, bytes, count, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { return due_fd(WRITE, fd) ? -1 : REAL(pwrite64)(fd, bytes, count, at); }
int fsync(int fd) { return due_fd(SYNC, fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return due_fd(SYNC, fd) ? -1 : REAL(fdatasync)(fd); }
int rename(const char *from, const char *to) { return due_path(from) ? -1 : REAL(rename)(from, to); }
int renameat(int a, const char *from, int b, const char *to) { return due_path(from) ? -1 : REAL(renameat)(a, from, b, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return due_path(from) ? -1 : REAL(renameat2)(a, from, b, to, flags); }
