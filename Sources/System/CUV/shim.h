#include <uv.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

// Hidden behind _GNU_SOURCE, which Swift's importer does not set.
extern int pthread_setname_np(pthread_t, const char *);
