// The backends of both sides: connections that post requests at a rate, each with one request at a time, and read the answers.
//
//   backends PORT CONNECTIONS RATE SECONDS LINES SIZE     LINES objects of SIZE bytes in each body; one JSON line
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

// Whether all of an answer has arrived.
static int is_whole(char *bytes, size_t count) {
  bytes[count] = 0;
  char *head = strstr(bytes, "\r\n\r\n"), *length = strcasestr(bytes, "content-length:");
  return head && length && count >= head + 4 - bytes + strtoul(length + 15, NULL, 10);
}

int main(int count, char **words) {
  if (count != 7) return 2;
  int connections = atoi(words[2]), poll = epoll_create1(0), one = 1, left = 0;
  double rate = atof(words[3]);
  long lines = atol(words[5]), size = atol(words[6]), wanted = rate * atof(words[4]), begun = 0, done = 0, failed = 0;
  char *text = malloc(lines * (size + 1) + 512), *line = malloc(size + 512);
  int wide = snprintf(line, 512, "{\"target\":\"user:ada\",\"app\":\"com.example.shop\",\"title\":\"Order\",\"body\":\"\"}");
  snprintf(line, size + 512, "{\"target\":\"user:ada\",\"app\":\"com.example.shop\",\"title\":\"Order\",\"body\":\"%0*d\"}", (int)(size > wide ? size - wide : 1), 0);
  long length = strlen(line) + 1;
  int at = sprintf(
    text, "POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: %ld\r\n\r\n",
    lines > 1 ? "application/x-ndjson" : "application/json", lines * length);
  for (long i = 0; i < lines; i++) at += sprintf(text + at, "%s\n", line);
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct {
    int socket;
    size_t count, size;
    char *bytes;
  } *all = calloc(connections, sizeof *all);
  int *idle = malloc(connections * sizeof *idle);
  for (int i = 0; i < connections; i++) {
    all[i].socket = socket(AF_INET, SOCK_STREAM, 0);
    all[i].bytes = malloc(all[i].size = 256 * lines + 4096);
    if (connect(all[i].socket, (void *)&place, sizeof place)) return perror("connect"), 1;
    setsockopt(all[i].socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(poll, EPOLL_CTL_ADD, all[i].socket, &(struct epoll_event){.events = EPOLLIN, .data.u32 = i});
    idle[left++] = i;
  }
  double start = seconds();
  while (done < wanted) {
    for (; left > 0 && begun < wanted && begun <= (seconds() - start) * rate; begun++)
      for (int socket = all[idle[--left]].socket, sent = 0; sent < at;) {
        ssize_t part = write(socket, text + sent, at - sent);
        if (part <= 0) return perror("write"), 1;
        sent += part;
      }
    struct epoll_event events[256];
    int ready = epoll_wait(poll, events, 256, 1);
    for (int i = 0; i < ready; i++) {
      int number = events[i].data.u32;
      ssize_t got = read(all[number].socket, all[number].bytes + all[number].count, all[number].size - all[number].count - 1);
      if (got <= 0) return fprintf(stderr, "a connection has ended\n"), 1;
      all[number].count += got;
      if (!is_whole(all[number].bytes, all[number].count)) continue;
      if (memcmp(all[number].bytes + 9, "202", 3) && !failed++) fprintf(stderr, "%.400s\n", all[number].bytes);
      all[number].count = 0;
      idle[left++] = number;
      done++;
    }
  }
  printf("{\"posts\": %ld, \"failed\": %ld, \"seconds\": %.2f}\n", done, failed, seconds() - start);
  return failed != 0;
}
