// Fails a run of tests that leaves a named thread behind: a lane, a device or a client that nobody closed. Such a thread works on while
// the process ends, and crashes it now and then. It needs no call: being linked is enough.
#define _GNU_SOURCE
#include "ThreadsLeft.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int patience = 60;

void threads_left_wait(int seconds) { patience = seconds; }

// A thread that has given itself a name and has not ended.
struct named {
  char name[16];
  struct named *previous, *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct named *all;
static pthread_key_t own;

static void ended(void *value) {
  struct named *thread = value;
  pthread_mutex_lock(&lock);
  if (thread->previous) thread->previous->next = thread->next; else all = thread->next;
  if (thread->next) thread->next->previous = thread->previous;
  pthread_mutex_unlock(&lock);
  free(thread);
}

static void note(const char *name) {
  struct named *thread = pthread_getspecific(own);
  if (!thread) {
    thread = calloc(1, sizeof *thread);
    if (!thread || pthread_setspecific(own, thread) != 0) abort();
    pthread_mutex_lock(&lock);
    thread->next = all;
    if (all) all->previous = thread;
    all = thread;
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  snprintf(thread->name, sizeof thread->name, "%s", name);
  pthread_mutex_unlock(&lock);
}

// Takes the place of the C library's function. The system itself cannot tell: a thread that has no name of its own has that of its maker.
int pthread_setname_np(pthread_t thread, const char *name) {
  int (*system_one)(pthread_t, const char *) = (int (*)(pthread_t, const char *))dlsym(RTLD_NEXT, "pthread_setname_np");
  if (pthread_equal(thread, pthread_self())) note(name);
  return system_one(thread, name);
}

// Threads of libraries. A consumer that closes keeps its threads, and the one in rd_kafka_consumer_close, until its last commit has timed out:
// an embedded broker that has gone meanwhile answers none, which takes a minute or more. Those of jemalloc, Swift Testing, Foundation and Swift's
// pool, which has its classes of quality of service in their names, live as long as the process.
static bool is_ours(const char *name) {
  static const char *const others[] = {"rdk:", "kafka-close", "jemalloc", "SWT ", "com.apple.", "-qos"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strstr(name, others[i])) return false;
  return true;
}

// Writes the names of the threads that are left, and returns how many there are.
static int list(char *text, size_t size) {
  int count = 0;
  size_t length = 0;
  pthread_mutex_lock(&lock);
  for (struct named *thread = all; thread; thread = thread->next) {
    if (!is_ours(thread->name)) continue;
    if (length < size) length += (size_t)snprintf(text + length, size - length, "%s%s", count > 0 ? ", " : "", thread->name);
    count++;
  }
  pthread_mutex_unlock(&lock);
  return count;
}

static void check(int status, void *unused) {
  (void)unused;
  // A run that has failed already has left what its tests did not come to close.
  if (status != 0) return;
  char names[1024] = "";
  for (int step = 0; list(names, sizeof names) > 0; step++) {
    if (step >= patience * 50) {
      fflush(NULL);
      dprintf(STDERR_FILENO, "✘ threads are left at the end of the tests: %s\n", names);
      _exit(EXIT_FAILURE);
    }
    usleep(20000);
  }
}

__attribute__((constructor)) static void begin(void) {
  pthread_key_create(&own, ended);
  // The first to be registered is the last to be called.
  on_exit(check, NULL);
}
