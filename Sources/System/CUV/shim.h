#include <uv.h>
#include <netinet/tcp.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

// Hidden behind _GNU_SOURCE, which Swift's importer does not set.
extern int pthread_setname_np(pthread_t, const char *);
extern int accept4(int, struct sockaddr *, socklen_t *, int);

// prlimit(2) with RLIMIT_DATA and a struct rlimit64, by its number: <sys/resource.h> belongs to Glibc's module.
extern long syscall(long, ...);
static inline long carillon_limit_data(pid_t process, unsigned long long bytes) {
  unsigned long long limit[2] = {bytes, bytes};
  return syscall(SYS_prlimit64, process, 2, limit, (void *)0);
}

// Bytes written to a connection that the peer's system has not acknowledged, by tcp(7); 0 where that is unknown.
static inline int carillon_unacknowledged(int descriptor) {
  int bytes = 0;
  return ioctl(descriptor, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// close_range(2) with CLOSE_RANGE_CLOEXEC, by its number: no program that is started gets a descriptor behind the standard ones.
static inline long carillon_close_others_on_exec(void) {
#ifdef SYS_close_range
  return syscall(SYS_close_range, 3u, ~0u, 4u);
#else
  return -1;
#endif
}
