// A fleet of devices and its publisher. It connects, publishes at a rate or as fast as the devices get it, acknowledges every notification, and
// measures: how long each took, whether one is missing or came twice, and what the servers took of the processor meanwhile.
//
//   fleet COUNT PORT [FLAG VALUE]...
//     --first N            the number of the first device (10000)
//     --plain yes          the server is limit.c; else it speaks carillon.v1
//     --unordered yes      notifications may come in any order
//     --kafka SERVERS/TOPIC, --raw PORT    where requests are published; neither: nowhere
//     --rate R, --window W requests a second, or so many outstanding
//     --size BYTES (300)
//     --warm, --duration, --drain S        seconds (2, 10, 1)
//     --settle S, --hold S seconds after the last device is ready; with --hold nothing is published
//     --server PID         its processor time and memory are measured
//     --also NAME:PID      its processor time too; up to eight times
//
// The last line is JSON.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTING_AT_ONCE = 256, EVENTS = 512, BUFFER = 1 << 20, ALSO = 8, BURST = 4096, LARGEST = 60000, CONNECT_SECONDS = 60 };
enum { PER_ADDRESS = 20000 }; // connections from one address; the kernel has about 28,000 ports for each
enum State { IDLE, CONNECTING, UPGRADING, WELCOMED, READY, ENDED };
enum Phase { CONNECT, WARM, MEASURE, DRAIN, STOP };

struct device {
  int descriptor;
  enum State state;
  uint64_t sequence; // of its latest notification
  size_t kept;       // the bytes of a frame that is not complete yet
  uint8_t *bytes;
};

static int count, port, first = 10000, is_plain, is_unordered, size = 300, also_count, raw = -1;
static double rate, window, warm = 2, duration = 10, drain = 1, settle, hold;
static const char *kafka_place;
static int server;
static struct { char name[32]; int process; double before, after; } also[ALSO];

static _Atomic int phase;
static _Atomic long ready, ended, received, repeats, gaps, published, refused, lost;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "fleet: %s: %s\n", what, why);
  exit(1);
}

static uint64_t nanoseconds(clockid_t which) {
  struct timespec time;
  clock_gettime(which, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static double seconds(void) { return nanoseconds(CLOCK_MONOTONIC) / 1e9; }

static void wait_for(double time) {
  struct timespec pause = {(time_t)time, (long)((time - (time_t)time) * 1e9)};
  nanosleep(&pause, NULL);
}

// Latencies, in microseconds

static uint32_t *latencies;
static size_t latency_count, latency_space;

static void note_latency(uint64_t nanoseconds_taken) {
  if (latency_count == latency_space) {
    latency_space = latency_space ? 2 * latency_space : 1 << 16;
    latencies = realloc(latencies, latency_space * sizeof *latencies);
    if (!latencies) fail("latencies", "no memory");
  }
  uint64_t value = nanoseconds_taken / 1000;
  latencies[latency_count++] = value < UINT32_MAX ? value : UINT32_MAX;
}

static int compare(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static double percentile(double part) { return latency_count ? latencies[(size_t)(part * (latency_count - 1))] : 0; }

// Devices

static struct device *devices;
static uint8_t *incoming, outgoing[BUFFER];
static size_t outgoing_length;
static int poller, next_device, connecting;

static void end_device(struct device *one) {
  if (one->state == ENDED) return;
  if (one->state < READY) connecting--;
  one->state = ENDED;
  close(one->descriptor);
  free(one->bytes);
  one->bytes = NULL;
  ended++;
}

static void send_to(struct device *one, const void *bytes, size_t length) {
  // What devices send is short: a server that leaves it no room in the kernel has stopped reading.
  if (send(one->descriptor, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length) end_device(one);
}

// Adds a frame to what is sent at the end of this read; the mask is zero, so the bytes stay as they are.
static void add_frame(int opcode, const void *bytes, size_t length) {
  if (outgoing_length + length + 8 > sizeof outgoing || length > UINT16_MAX) fail("a device", "it has too much to send");
  uint8_t *frame = outgoing + outgoing_length;
  size_t head = 2;
  frame[0] = 0x80 | opcode;
  if (length < 126) {
    frame[1] = 0x80 | length;
  } else {
    frame[1] = 0x80 | 126, frame[2] = length >> 8, frame[3] = length;
    head = 4;
  }
  memset(frame + head, 0, 4);
  memcpy(frame + head + 4, bytes, length);
  outgoing_length += head + 4 + length;
}

static void flush(struct device *one) {
  if (outgoing_length && one->state != ENDED) send_to(one, outgoing, outgoing_length);
  outgoing_length = 0;
}

static void connect_one(int number) {
  struct device *one = &devices[number];
  int yes = 1;
  one->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (one->descriptor < 0) fail("socket", strerror(errno));
  setsockopt(one->descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (number >= PER_ADDRESS) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + number / PER_ADDRESS)};
    if (bind(one->descriptor, (void *)&own, sizeof own)) fail("bind", strerror(errno));
  }
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(one->descriptor, (void *)&there, sizeof there) && errno != EINPROGRESS) fail("connect", strerror(errno));
  one->state = CONNECTING;
  connecting++;
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = number};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, one->descriptor, &event)) fail("epoll", strerror(errno));
}

static void upgrade(struct device *one) {
  char request[512];
  int number = one - devices, error = 0;
  socklen_t length = sizeof error;
  getsockopt(one->descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error) {
    end_device(one);
    return;
  }
  char path[32] = "v1/device";
  if (is_plain) snprintf(path, sizeof path, "%d", number);
  int bytes = snprintf(request, sizeof request,
                       "GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
                       path, port, is_plain ? "" : "Sec-WebSocket-Protocol: carillon.v1\r\n");
  one->state = UPGRADING;
  send_to(one, request, bytes);
}

static void become_ready(struct device *one) {
  one->state = READY;
  connecting--;
  ready++;
}

static void say_hello(struct device *one) {
  char hello[256];
  int number = first + (one - devices);
  one->state = WELCOMED;
  if (is_plain) {
    become_ready(one);
    return;
  }
  add_frame(1, hello, snprintf(hello, sizeof hello,
                               "{\"type\":\"hello\",\"device\":\"%059d%d\",\"application\":\"com.example.shop\",\"user\":\"u%d\"}", 0, number, number));
}

// The number that follows a member's name; -1: there is no such member.
static int64_t number_after(const uint8_t *text, size_t length, const char *name) {
  const uint8_t *found = memmem(text, length, name, strlen(name)), *end = text + length;
  if (!found) return -1;
  int64_t value = 0;
  for (found += strlen(name); found < end && *found >= '0' && *found <= '9'; found++) value = value * 10 + (*found - '0');
  return value;
}

static void take_message(struct device *one, const uint8_t *text, size_t length, uint64_t now) {
  if (one->state == WELCOMED && memmem(text, length, "\"welcome\"", 9)) become_ready(one);
  int64_t sent = number_after(text, length, "\"ts\":");
  if (sent < 0) return; // no notification
  received++;
  if (phase == MEASURE) note_latency(now > (uint64_t)sent ? now - sent : 0);
  if (!is_unordered) {
    uint64_t sequence = number_after(text, length, "\"seq\":");
    if (one->sequence && sequence > one->sequence + 1) gaps += sequence - one->sequence - 1;
    if (sequence <= one->sequence) repeats++;
    else one->sequence = sequence;
  }
  char answer[96];
  int64_t delivery = number_after(text, length, is_plain ? "\"seq\":" : "\"delivery\":");
  if (delivery >= 0) add_frame(1, answer, snprintf(answer, sizeof answer, "{\"type\":\"ack\",\"deliveries\":[%lld]}", (long long)delivery));
}

// Takes the frames that are complete; answers how many bytes they have.
static size_t take_frames(struct device *one, const uint8_t *bytes, size_t length, uint64_t now) {
  size_t at = 0;
  while (one->state != ENDED && length - at >= 2) {
    const uint8_t *frame = bytes + at;
    size_t head = 2, content = frame[1] & 127;
    if (content == 126) {
      if (length - at < 4) break;
      content = frame[2] << 8 | frame[3], head = 4;
    } else if (content == 127) {
      if (length - at < 10) break;
      content = 0, head = 10;
      for (int place = 2; place < 10; place++) content = content << 8 | frame[place];
    }
    if (content > BUFFER / 2) fail("a frame", "it is too long");
    if (length - at - head < content) break;
    switch (frame[0]) {
    case 0x81: take_message(one, frame + head, content, now); break;
    case 0x89: add_frame(10, frame + head, content); break;
    case 0x88: end_device(one); break;
    default: fail("a frame", "it is a fragment, or of no known kind");
    }
    at += head + content;
  }
  return at;
}

static size_t take_bytes(struct device *one, const uint8_t *bytes, size_t length, uint64_t now) {
  size_t at = 0;
  if (one->state == UPGRADING) {
    const uint8_t *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (!end) return 0;
    if (length < 12 || memcmp(bytes, "HTTP/1.1 101", 12)) {
      end_device(one);
      return length;
    }
    at = end + 4 - bytes;
    say_hello(one);
  }
  return at + take_frames(one, bytes + at, length - at, now);
}

static void read_all(struct device *one) {
  while (one->state != ENDED) {
    size_t kept = one->kept;
    if (kept) memcpy(incoming, one->bytes, kept);
    ssize_t more = recv(one->descriptor, incoming + kept, BUFFER - kept, MSG_DONTWAIT);
    if (more < 0 && errno == EAGAIN) return;
    if (more <= 0) {
      end_device(one);
      return;
    }
    size_t length = kept + more, taken = take_bytes(one, incoming, length, nanoseconds(CLOCK_REALTIME));
    flush(one);
    if (one->state == ENDED) return;
    free(one->bytes);
    one->bytes = NULL;
    one->kept = length - taken;
    if (one->kept) {
      one->bytes = malloc(one->kept);
      if (!one->bytes) fail("a frame", "no memory");
      memcpy(one->bytes, incoming + taken, one->kept);
    }
    // The kernel had less than there was room for, so it has no more.
    if (kept + more < BUFFER) return;
  }
}

static void *run_devices(void *unused) {
  poller = epoll_create1(0);
  incoming = malloc(BUFFER);
  while (phase != STOP) {
    while (next_device < count && connecting < CONNECTING_AT_ONCE) connect_one(next_device++);
    struct epoll_event events[EVENTS];
    int found = epoll_wait(poller, events, EVENTS, 20);
    for (int place = 0; place < found; place++) {
      struct device *one = &devices[events[place].data.u32];
      if (one->state == CONNECTING && events[place].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) upgrade(one);
      if (one->state > CONNECTING && one->state < ENDED && events[place].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) read_all(one);
    }
  }
  return NULL;
}

// The publisher

static rd_kafka_t *producer;
static rd_kafka_topic_t *topic;
static int limit_socket = -1;

static void report(rd_kafka_t *client, const rd_kafka_message_t *record, void *unused) {
  if (record->err) refused++;
}

static void open_kafka(void) {
  char servers[256], error[512];
  const char *slash = strrchr(kafka_place, '/');
  if (!slash) fail("--kafka", "SERVERS/TOPIC is expected");
  snprintf(servers, sizeof servers, "%.*s", (int)(slash - kafka_place), kafka_place);
  const char *settings[] = {"bootstrap.servers", servers, "linger.ms", "1", "acks", "all", "partitioner", "murmur2_random",
                            "queue.buffering.max.messages", "500000", "batch.num.messages", "10000", "socket.nagle.disable", "true"};
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  for (size_t place = 0; place < sizeof settings / sizeof *settings; place += 2)
    if (rd_kafka_conf_set(conf, settings[place], settings[place + 1], error, sizeof error)) fail("setting", error);
  rd_kafka_conf_set_dr_msg_cb(conf, report);
  producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  if (!producer) fail("producer", error);
  topic = rd_kafka_topic_new(producer, slash + 1, NULL);
  const struct rd_kafka_metadata *metadata;
  if (rd_kafka_metadata(producer, 0, topic, &metadata, 30000)) fail(slash + 1, "Kafka does not know it");
  rd_kafka_metadata_destroy(metadata);
}

static void open_limit(void) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(raw), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int yes = 1;
  limit_socket = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(limit_socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(limit_socket, (void *)&there, sizeof there)) fail("limit", strerror(errno));
}

static uint8_t raw_bytes[1 << 16];
static size_t raw_length;

static void flush_raw(void) {
  for (size_t at = 0; at < raw_length;) {
    ssize_t sent = send(limit_socket, raw_bytes + at, raw_length - at, MSG_NOSIGNAL);
    if (sent <= 0) fail("limit", "it has closed");
    at += sent;
  }
  raw_length = 0;
}

// Whether there was room for it.
static int publish(uint32_t number, const char *message, uint32_t length) {
  if (limit_socket >= 0) {
    if (raw_length + 8 + length > sizeof raw_bytes) flush_raw();
    memcpy(raw_bytes + raw_length, &(uint32_t[]){number, length}, 8);
    memcpy(raw_bytes + raw_length + 8, message, length);
    raw_length += 8 + length;
    return 1;
  }
  char target[96];
  int target_length = snprintf(target, sizeof target, "device:%059d%u", 0, first + number);
  return !rd_kafka_producev(
      producer, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_KEY(target, target_length), RD_KAFKA_V_VALUE((void *)message, length),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADER("target", target, target_length),
      RD_KAFKA_V_HEADER("apns-topic", "com.example.shop", -1), RD_KAFKA_V_HEADER("apns-push-type", "alert", -1), RD_KAFKA_V_END);
}

static uint32_t any_device(void) {
  static uint64_t state = 0x9e3779b97f4a7c15;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (state >> 20) % count;
}

static void *run_publisher(void *unused) {
  uint64_t *sequences = calloc(count, sizeof *sequences);
  char *message = malloc(size + 256), *body = malloc(size + 1);
  memset(body, 'x', size);
  double start = 0, progress = 0;
  long got = 0;
  for (int now_in; (now_in = phase) != STOP;) {
    if (now_in != WARM && now_in != MEASURE) {
      if (producer) rd_kafka_poll(producer, 0);
      wait_for(0.001);
      continue;
    }
    double now = seconds(), due;
    if (!start) start = progress = now;
    if (rate > 0) {
      due = (now - start) * rate - published;
    } else {
      if (received != got) got = received, progress = now;
      double outstanding = published - lost - received;
      // Nothing has come for two seconds: what is outstanding will not come, and the next ones may go.
      if (outstanding > 0 && now - progress > 2) {
        lost += (long)outstanding;
        progress = now, outstanding = 0;
      }
      due = window - outstanding;
    }
    int done = 0;
    for (; done < due && done < BURST; done++) {
      uint32_t number = any_device();
      int length = snprintf(message, 256, "{\"aps\":{\"alert\":\"bench\"},\"ts\":%llu,\"seq\":%llu,\"body\":\"",
                            (unsigned long long)nanoseconds(CLOCK_REALTIME), (unsigned long long)sequences[number] + 1);
      int rest = size - length - 2;
      length += sprintf(message + length, "%.*s\"}", rest > 0 ? rest : 0, body);
      if (!publish(number, message, length)) break;
      sequences[number]++;
      published++;
      if (producer && done % 64 == 0) rd_kafka_poll(producer, 0);
    }
    if (producer) rd_kafka_poll(producer, 0);
    if (limit_socket >= 0) flush_raw();
    if (rate > 0) {
      double left = (published + 1) / rate - (seconds() - start);
      wait_for(left < 0.0001 ? 0.0001 : left > 0.02 ? 0.02 : left);
    } else if (!done) {
      wait_for(0.0002);
    }
  }
  if (producer) rd_kafka_flush(producer, 10000);
  return NULL;
}

// What the kernel says of a process

static double processor_time(int process) {
  char path[64], text[1024];
  unsigned long user = 0, system = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  char *fields = strrchr(text, ')');
  if (fields) sscanf(fields + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return (double)(user + system) / sysconf(_SC_CLK_TCK);
}

static double resident(int process) {
  char path[64];
  long pages = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", process);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  fclose(file);
  return (double)pages * sysconf(_SC_PAGESIZE);
}

static void parse(int words, char **word) {
  if (words < 3 || words % 2 == 0) fail("usage", "fleet COUNT PORT [FLAG VALUE]...; see the head of fleet.c");
  count = atoi(word[1]), port = atoi(word[2]);
  for (int place = 3; place < words; place += 2) {
    const char *flag = word[place], *value = word[place + 1];
    struct { const char *name; double *value; } numbers[] = {{"--rate", &rate},   {"--window", &window}, {"--warm", &warm}, {"--duration", &duration},
                                                             {"--drain", &drain}, {"--settle", &settle}, {"--hold", &hold}};
    struct { const char *name; int *value; } integers[] = {{"--first", &first}, {"--size", &size}, {"--raw", &raw}, {"--server", &server}};
    int is_known = 0;
    for (size_t number = 0; number < sizeof numbers / sizeof *numbers; number++)
      if (!strcmp(flag, numbers[number].name)) *numbers[number].value = atof(value), is_known = 1;
    for (size_t number = 0; number < sizeof integers / sizeof *integers; number++)
      if (!strcmp(flag, integers[number].name)) *integers[number].value = atoi(value), is_known = 1;
    if (!strcmp(flag, "--plain")) is_plain = is_known = 1;
    if (!strcmp(flag, "--unordered")) is_unordered = is_known = 1;
    if (!strcmp(flag, "--kafka")) kafka_place = value, is_known = 1;
    if (!strcmp(flag, "--also") && also_count < ALSO && sscanf(value, "%31[^:]:%d", also[also_count].name, &also[also_count].process) == 2)
      also_count++, is_known = 1;
    if (!is_known) fail(flag, "it is not known, or has no such value");
  }
  if (count < 1 || size > LARGEST) fail("usage", "a COUNT of at least 1, and at most 60,000 bytes");
}

int main(int words, char **word) {
  parse(words, word);
  prctl(PR_SET_TIMERSLACK, 1);
  signal(SIGPIPE, SIG_IGN);
  struct rlimit descriptors;
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  devices = calloc(count, sizeof *devices);
  double memory = resident(server);
  pthread_t device_thread, publisher_thread;
  pthread_create(&device_thread, NULL, run_devices, NULL);
  for (double end = seconds() + CONNECT_SECONDS; ready + ended < count && seconds() < end;) wait_for(0.005);
  long connected = ready;
  wait_for(settle);
  memory = resident(server) - memory;

  long before = 0, after = 0;
  double start = 0, spent = 0, took = 0;
  if (hold > 0) {
    wait_for(hold);
  } else {
    if (kafka_place) open_kafka();
    if (raw >= 0) open_limit();
    pthread_create(&publisher_thread, NULL, run_publisher, NULL);
    phase = WARM;
    wait_for(warm);
    phase = MEASURE;
    start = seconds(), before = received, spent = processor_time(server);
    for (int place = 0; place < also_count; place++) also[place].before = processor_time(also[place].process);
    wait_for(duration);
    took = seconds() - start, after = received, spent = processor_time(server) - spent;
    for (int place = 0; place < also_count; place++) also[place].after = processor_time(also[place].process);
    phase = DRAIN;
    wait_for(drain);
  }
  phase = STOP;
  pthread_join(device_thread, NULL);
  if (hold <= 0) pthread_join(publisher_thread, NULL);
  qsort(latencies, latency_count, sizeof *latencies, compare);
  double measured = after > before ? after - before : 1;
  printf("{\"ready\": %ld, \"ended\": %ld, \"total\": %ld, \"repeats\": %ld, \"gaps\": %ld, \"published\": %ld, \"refused\": %ld, \"lost\": %ld",
         connected, (long)ended, (long)received, (long)repeats, (long)gaps, (long)published, (long)refused, (long)lost);
  if (hold <= 0) {
    printf(", \"per_second\": %.0f, \"latency_us\": {\"count\": %zu, \"p50\": %.0f, \"p99\": %.0f}, \"server_us\": %.3f", (after - before) / took,
           latency_count, percentile(0.5), percentile(0.99), spent * 1e6 / measured);
    for (int place = 0; place < also_count; place++)
      printf(", \"%s_us\": %.3f", also[place].name, (also[place].after - also[place].before) * 1e6 / measured);
  }
  printf(", \"bytes_per_connection\": %.0f}\n", connected ? memory / connected : 0);
  return 0;
}
