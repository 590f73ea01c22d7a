// Preloaded into a program, it has its connections to one port of this machine go to another one, where something stands between:
// DETOUR=FROM:TO. What a broker says of its own address stays as it is.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
  static int (*next)(int, const struct sockaddr *, socklen_t);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "connect");
  const char *detour = getenv("DETOUR");
  unsigned from, to;
  struct sockaddr_in there;
  if (detour && sscanf(detour, "%u:%u", &from, &to) == 2 && address->sa_family == AF_INET && length >= sizeof there) {
    memcpy(&there, address, sizeof there);
    if (there.sin_port == htons(from)) {
      there.sin_port = htons(to);
      return next(descriptor, (struct sockaddr *)&there, sizeof there);
    }
  }
  return next(descriptor, address, length);
}
