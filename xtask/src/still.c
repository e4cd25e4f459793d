/* Makes the clock stand still and chance repeat itself for the program that is started with this library: what componentize-qjs writes down of
 * an interpreter's memory holds both, and the same sources are to make the same bytes. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/types.h>
#include <time.h>

ssize_t getrandom(void *bytes, size_t length, unsigned int flags) {
    (void)flags;
    memset(bytes, 0x5a, length);
    return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    now->tv_sec = 1000000;
    now->tv_nsec = 0;
    return 0;
}
