/* A wall clock that is wrong by CLOCK_AHEAD seconds, or by the 64-bit number in the file CLOCK_CONTROL, which may
 * change at any time. Preloaded into the server; monotonic clocks are not changed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_llong *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_CONTROL");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED) control = map;
}

static long ahead(void) {
    if (control) return (long)atomic_load(control);
    const char *text = getenv("CLOCK_AHEAD");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += ahead();
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
