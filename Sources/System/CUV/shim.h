#include <uv.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

// Hidden behind _GNU_SOURCE, which Swift's importer does not set.
extern int pthread_setname_np(pthread_t, const char *);
extern int prlimit(pid_t, int, const struct rlimit *, struct rlimit *);

// The constant is an enumerator that Swift cannot hand to a C function of another type.
static inline int carillon_limit_data(pid_t process, const struct rlimit *limit) { return prlimit(process, RLIMIT_DATA, limit, NULL); }
