// What a plain program needs to post to a web service at a rate: libcurl's multi interface, connections reused, answers read and thrown away.
//
//   posts URL RATE SECONDS CONCURRENCY BODY-BYTES     one JSON line: posts, failures, CPU microseconds a post
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static size_t drop(char *bytes, size_t size, size_t count, void *unused) { return size * count; }

int main(int count, char **words) {
  if (count != 6) return 2;
  double rate = atof(words[2]), seconds = atof(words[3]);
  int handles = atoi(words[4]), length = atoi(words[5]);
  char *body = malloc(length);
  memset(body, 'x', length);
  struct curl_slist *headers = NULL;
  const char *fields[] = {
      "content-type: application/json", "accept: application/json", "webhook-id: 00000000-0000-0000-0000-000000000000_ask",
      "webhook-timestamp: 1700000000", "webhook-signature: v1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx=", "webhook-key-id: one", "expect:"};
  for (int i = 0; i < 7; i++) headers = curl_slist_append(headers, fields[i]);
  curl_global_init(CURL_GLOBAL_ALL);
  CURLM *multi = curl_multi_init();
  CURL **idle = malloc(handles * sizeof *idle);
  int left = handles;
  for (int i = 0; i < handles; i++) {
    CURL *easy = idle[i] = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, words[1]);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)length);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  }
  double start = now(), spent = cpu();
  long begun = 0, done = 0, failed = 0, wanted = rate * seconds;
  while (done < wanted) {
    double due = (now() - start) * rate;
    while (left > 0 && begun < wanted && begun < due) {
      curl_multi_add_handle(multi, idle[--left]);
      begun++;
    }
    int running, queued;
    curl_multi_perform(multi, &running);
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &queued));) {
      if (message->msg != CURLMSG_DONE) continue;
      long status = 0;
      CURL *easy = message->easy_handle;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      if (message->data.result != CURLE_OK || status != 200) failed++;
      curl_multi_remove_handle(multi, easy);
      idle[left++] = easy;
      done++;
    }
    curl_multi_poll(multi, NULL, 0, 1, NULL);
  }
  printf("{\"posts\": %ld, \"failed\": %ld, \"seconds\": %.3f, \"cpu_us\": %.2f}\n", done, failed, now() - start, (cpu() - spent) / done);
}
