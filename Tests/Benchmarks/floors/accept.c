// The least of an ingress: one thread that reads POSTs, produces a record for each line of a body, and answers 202 when Kafka has all of them.
// It checks nothing, and reads of HTTP only Content-Length. Beside it the least of a Kafka client that produces the same records itself.
//
//   accept serve PORT HOST:PORT TOPIC
//   accept produce HOST:PORT TOPIC RATE SECONDS LINES SIZE     LINES records at once, RATE times a second; one JSON line
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ID "eabeae54-14a8-11e5-b60b-1697f925ec7b"
static const char *const fields[][2] = {{"target", "user:ada"}, {"apns-topic", "com.example.shop"}, {"apns-id", ID}};
static const char answer[] =
  "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\napns-id: " ID "\r\nContent-Length: 50\r\n\r\n{\"apnsId\":\"" ID "\"}\n";

typedef struct {
  int socket;
  long open; // the records that Kafka has not acknowledged
  size_t count, size;
  char *bytes;
} connection;

static rd_kafka_t *producer;
static rd_kafka_topic_t *topic;
static rd_kafka_queue_t *reports;
static long acknowledged, refused;

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char error[512];
  if (rd_kafka_conf_set(conf, name, value, error, sizeof error)) fprintf(stderr, "%s\n", error), exit(2);
}

static void connect_to(const char *servers, const char *name) {
  char error[512];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", servers);
  set(conf, "enable.idempotence", "true");
  set(conf, "linger.ms", "5");
  set(conf, "partitioner", "murmur2_random");
  rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
  if (!(producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error))) fprintf(stderr, "%s\n", error), exit(2);
  topic = rd_kafka_topic_new(producer, name, NULL);
  reports = rd_kafka_queue_get_main(producer);
}

static void produce(const char *value, size_t length, void *opaque) {
  rd_kafka_headers_t *headers = rd_kafka_headers_new(3);
  for (int i = 0; i < 3; i++) rd_kafka_header_add(headers, fields[i][0], -1, fields[i][1], -1);
  rd_kafka_resp_err_t error = rd_kafka_producev(
    producer, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY("user:ada", 8),
    RD_KAFKA_V_VALUE((void *)value, length), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
  if (error) fprintf(stderr, "%s\n", rd_kafka_err2str(error)), exit(1);
}

// Takes the reports that are there.
static void report(int milliseconds) {
  for (rd_kafka_event_t *event; (event = rd_kafka_queue_poll(reports, milliseconds)); rd_kafka_event_destroy(event), milliseconds = 0)
    for (const rd_kafka_message_t *message; (message = rd_kafka_event_message_next(event));) {
      connection *c = message->_private;
      acknowledged++;
      if (message->err) refused++;
      // The clients of a benchmark read their answers, so that there is always room.
      if (c && --c->open == 0 && write(c->socket, answer, sizeof answer - 1) < 0) perror("write");
    }
}

// Produces the lines of a whole request; false while one has not arrived.
static int take(connection *c) {
  char *head = memmem(c->bytes, c->count, "\r\n\r\n", 4), *length = c->bytes;
  if (!head) return 0;
  c->bytes[c->count] = 0;
  if (!(length = strcasestr(c->bytes, "content-length:"))) return -1;
  size_t whole = head + 4 - c->bytes + strtoul(length + 15, NULL, 10);
  if (c->count < whole) return 0;
  char *line = head + 4, *end = c->bytes + whole;
  c->open = 1;
  for (char *next; line < end; line = next) {
    char *feed = memchr(line, '\n', end - line);
    next = feed ? feed + 1 : end;
    c->open++;
    produce(line, next - line, c);
  }
  c->open--;
  c->count = 0; // No client of a benchmark sends the next request before it has its answer.
  return 1;
}

static int serve(int port) {
  int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), wake = eventfd(0, EFD_NONBLOCK), poll = epoll_create1(0);
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (void *)&place, sizeof place) || listen(listener, 1024)) return perror("listen"), 1;
  unsigned long long number = 1;
  rd_kafka_queue_io_event_enable(reports, wake, &number, sizeof number);
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN});
  epoll_ctl(poll, EPOLL_CTL_ADD, wake, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &reports});
  for (;;) {
    struct epoll_event events[256];
    int count = epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < count; i++) {
      connection *c = events[i].data.ptr;
      if ((void *)c == &reports) {
        if (read(wake, &number, sizeof number) > 0) report(0);
      } else if (!c) {
        for (int socket; (socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
          setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
          c = calloc(1, sizeof *c);
          c->socket = socket;
          c->bytes = malloc(c->size = 1 << 21);
          epoll_ctl(poll, EPOLL_CTL_ADD, socket, &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
        }
      } else {
        ssize_t got = read(c->socket, c->bytes + c->count, c->size - c->count - 1);
        if (got > 0) c->count += got;
        if (got <= 0 || take(c) < 0) close(c->socket);
      }
    }
  }
}

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
  if (count == 5 && !strcmp(words[1], "serve")) return connect_to(words[3], words[4]), serve(atoi(words[2]));
  if (count != 8 || strcmp(words[1], "produce")) return fprintf(stderr, "usage: in the first lines of the source\n"), 2;
  connect_to(words[2], words[3]);
  double rate = atof(words[4]), start = seconds();
  long lines = atol(words[6]), size = atol(words[7]), wanted = rate * atof(words[5]) * lines, begun = 0;
  char *value = malloc(size);
  memset(value, 'x', size);
  while (acknowledged < wanted) {
    for (; begun < wanted && begun / lines <= (seconds() - start) * rate; begun += lines)
      for (long line = 0; line < lines; line++) produce(value, size, NULL);
    report(1);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double spent = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  printf("{\"records\": %ld, \"failed\": %ld, \"seconds\": %.2f, \"cpu_us\": %.2f}\n", acknowledged, refused, seconds() - start, spent / acknowledged);
  return refused != 0;
}
