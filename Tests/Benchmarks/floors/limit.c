// The limit of the fan-out stage: what one thread needs to hold WebSocket connections and to write one frame for each message, with one `send`.
// It reads what devices acknowledge and forgets it. It looks nothing up but an element of an array, and keeps no queue.
//
//   limit DEVICES-PORT PUBLISHER-PORT
//
// A device connects with the path /NUMBER. A publisher sends the device's number and the length as 32 bits each, and the message.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DESCRIPTORS = 1 << 20, DEVICES = 1 << 20, LARGEST = 60000, EVENTS = 512 };
enum Role { CLOSED, DEVICE_LISTENER, PUBLISHER_LISTENER, UPGRADING, DEVICE, PUBLISHER };

// fleet.c always sends the key of the example in RFC 6455, so the answer is the same for each connection.
static const char UPGRADED[] =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

static uint8_t role[DESCRIPTORS];
static int device[DEVICES], poller;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void watch(int descriptor, enum Role as) {
  if (descriptor >= DESCRIPTORS) fail("too many connections");
  role[descriptor] = as;
  struct epoll_event event = {.events = EPOLLIN | (as == UPGRADING ? EPOLLET : 0), .data.fd = descriptor};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event)) fail("epoll");
}

static void listen_at(const char *port, enum Role as) {
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(descriptor, (void *)&address, sizeof address) || listen(descriptor, 4096)) fail("listen");
  watch(descriptor, as);
}

static void accept_all(int listener) {
  int descriptor, yes = 1;
  while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    watch(descriptor, role[listener] == DEVICE_LISTENER ? UPGRADING : PUBLISHER);
  }
}

static void close_one(int descriptor) {
  role[descriptor] = CLOSED;
  close(descriptor);
}

// Reads once. Whether the connection is still open.
static int receive(int descriptor, uint8_t *into, size_t size, ssize_t *length) {
  *length = recv(descriptor, into, size, 0);
  if (*length > 0 || (*length < 0 && errno == EAGAIN)) return 1;
  close_one(descriptor);
  return 0;
}

static void upgrade(int descriptor) {
  uint8_t request[4096];
  ssize_t length;
  unsigned number;
  if (!receive(descriptor, request, sizeof request - 1, &length) || length < 0) return;
  request[length] = 0;
  if (sscanf((char *)request, "GET /%u ", &number) != 1 || number >= DEVICES) {
    close_one(descriptor);
    return;
  }
  device[number] = descriptor;
  role[descriptor] = DEVICE;
  if (send(descriptor, UPGRADED, sizeof UPGRADED - 1, MSG_NOSIGNAL) < 0) close_one(descriptor);
}

// A message that the kernel does not take is lost; the fleet finds the gap.
static void deliver(uint32_t number, const uint8_t *message, uint32_t length) {
  static uint8_t frame[LARGEST + 4];
  size_t head = 2;
  frame[0] = 0x81;
  if (length < 126) {
    frame[1] = length;
  } else {
    frame[1] = 126, frame[2] = length >> 8, frame[3] = length;
    head = 4;
  }
  memcpy(frame + head, message, length);
  if (number < DEVICES && device[number]) send(device[number], frame, head + length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void publish(int descriptor) {
  static uint8_t waiting[1 << 21];
  static size_t length;
  ssize_t more;
  if (!receive(descriptor, waiting + length, sizeof waiting - length, &more)) {
    length = 0;
    return;
  }
  if (more > 0) length += more;
  size_t at = 0;
  while (length - at >= 8) {
    uint32_t head[2];
    memcpy(head, waiting + at, sizeof head);
    if (head[1] > LARGEST) {
      fprintf(stderr, "limit: a message of %u bytes\n", head[1]);
      exit(1);
    }
    if (length - at - 8 < head[1]) break;
    deliver(head[0], waiting + at + 8, head[1]);
    at += 8 + head[1];
  }
  memmove(waiting, waiting + at, length - at);
  length -= at;
}

int main(int words, char **word) {
  static uint8_t unread[65536];
  if (words != 3) return fprintf(stderr, "usage: limit DEVICES-PORT PUBLISHER-PORT\n"), 2;
  struct rlimit descriptors;
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  signal(SIGPIPE, SIG_IGN);
  poller = epoll_create1(0);
  listen_at(word[1], DEVICE_LISTENER);
  listen_at(word[2], PUBLISHER_LISTENER);
  for (;;) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(poller, events, EVENTS, -1);
    for (int place = 0; place < count; place++) {
      int descriptor = events[place].data.fd;
      ssize_t length;
      switch (role[descriptor]) {
      case DEVICE_LISTENER:
      case PUBLISHER_LISTENER: accept_all(descriptor); break;
      case UPGRADING: upgrade(descriptor); break;
      // Edges: more is there only where all of the buffer was needed.
      case DEVICE: while (receive(descriptor, unread, sizeof unread, &length) && length == sizeof unread) {} break;
      case PUBLISHER: publish(descriptor); break;
      }
    }
  }
}
