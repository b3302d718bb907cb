/* Shifts CLOCK_REALTIME of one process by the nanoseconds that stand in the file named by SHIFTED_CLOCK, as if
 * somebody set the wall clock of its computer. Waits for an instant of that clock are shifted back, since the
 * kernel waits by its own. Loaded with LD_PRELOAD; see tests/faults/wall_clock.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *shift_ns;

__attribute__((constructor)) static void find(void) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof *shift_ns, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) shift_ns = found;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && shift_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long shifted = now->tv_sec * 1000000000LL + now->tv_nsec + *shift_ns;
        now->tv_sec = shifted / 1000000000LL;
        now->tv_nsec = shifted % 1000000000LL;
    }
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    const time_t year_2001 = 1000000000; /* an instant before that is one of the monotonic clock */
    struct timespec real = *until;
    if (until->tv_sec < year_2001) return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, until);
    if (shift_ns) {
        long long shifted = until->tv_sec * 1000000000LL + until->tv_nsec - *shift_ns;
        real.tv_sec = shifted / 1000000000LL;
        real.tv_nsec = shifted % 1000000000LL;
    }
    return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, &real);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec fine;
    int result = clock_gettime(CLOCK_REALTIME, &fine);
    (void)zone;
    now->tv_sec = fine.tv_sec;
    now->tv_usec = fine.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
