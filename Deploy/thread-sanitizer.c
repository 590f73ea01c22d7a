// ThreadSanitizer knows POSIX threads only, and librdkafka uses those of C11: a thread that it has not seen begin ends the process.
// Preloaded by `Deploy/test --sanitize thread`, this makes the ones of the others; in glibc their types are the same.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

struct start {
  thrd_start_t body;
  void *argument;
};

static void *run(void *pointer) {
  struct start start = *(struct start *)pointer;
  free(pointer);
  return (void *)(intptr_t)start.body(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t body, void *argument) {
  struct start *start = malloc(sizeof *start);
  if (start == NULL) return thrd_nomem;
  start->body = body;
  start->argument = argument;
  if (pthread_create(thread, NULL, run, start) == 0) return thrd_success;
  free(start);
  return thrd_error;
}

int thrd_join(thrd_t thread, int *result) {
  void *answer;
  if (pthread_join(thread, &answer) != 0) return thrd_error;
  if (result != NULL) *result = (int)(intptr_t)answer;
  return thrd_success;
}

int thrd_detach(thrd_t thread) { return pthread_detach(thread) == 0 ? thrd_success : thrd_error; }

int mtx_init(mtx_t *mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  int code = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return code == 0 ? thrd_success : thrd_error;
}

int mtx_lock(mtx_t *mutex) { return pthread_mutex_lock((pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_error; }
int mtx_trylock(mtx_t *mutex) { return pthread_mutex_trylock((pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_busy; }
int mtx_unlock(mtx_t *mutex) { return pthread_mutex_unlock((pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_error; }
void mtx_destroy(mtx_t *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex); }

int cnd_init(cnd_t *condition) { return pthread_cond_init((pthread_cond_t *)condition, NULL) == 0 ? thrd_success : thrd_error; }
int cnd_signal(cnd_t *condition) { return pthread_cond_signal((pthread_cond_t *)condition) == 0 ? thrd_success : thrd_error; }
int cnd_broadcast(cnd_t *condition) { return pthread_cond_broadcast((pthread_cond_t *)condition) == 0 ? thrd_success : thrd_error; }
void cnd_destroy(cnd_t *condition) { pthread_cond_destroy((pthread_cond_t *)condition); }

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
  return pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_error;
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *time) {
  int code = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, time);
  return code == 0 ? thrd_success : code == 110 ? thrd_timedout : thrd_error;
}
