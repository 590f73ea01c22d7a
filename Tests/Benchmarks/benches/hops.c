// What one hop of a notification takes alone, at a rate: a record from a plain producer to a plain consumer, or a script call of Redis.
//
//   hops kafka BOOTSTRAP TOPIC RATE SECONDS
//   hops redis HOST PORT RATE SECONDS
//
// Each message has a time at which it is due, and counts from then (an open loop). The last line is JSON: the count, and the median and the 99th
// percentile in milliseconds.
#include <hiredis/hiredis.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAYLOAD = 300, TICK = 1000000, PATIENCE = 60 };
static const char *SCRIPT = "redis.call('hset', KEYS[1], 'f', ARGV[1]) return redis.call('hget', KEYS[1], 'f')";
static int64_t *taken;
static long count, total;

static void fail(const char *what) {
  fprintf(stderr, "hops: %s\n", what);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_tick(void) {
  struct timespec tick = {0, TICK};
  nanosleep(&tick, NULL);
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void report(void) {
  if (count == 0) fail("nothing came through");
  qsort(taken, count, sizeof *taken, compare);
  printf("{\"count\": %ld, \"due\": %ld, \"p50\": %.3f, \"p99\": %.3f}\n", count, total, taken[count / 2] / 1e6, taken[count * 99 / 100] / 1e6);
}

// Kafka

static void *consume(void *consumer) {
  int64_t end = now() + (int64_t)PATIENCE * 1000000000LL + total * 1000LL;
  while (count < total && now() < end) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
    if (!message) continue;
    if (!message->err && message->len == PAYLOAD) {
      int64_t due;
      memcpy(&due, message->payload, sizeof due);
      taken[count++] = now() - due;
      end = now() + (int64_t)PATIENCE * 1000000000LL;
    }
    rd_kafka_message_destroy(message);
  }
  return NULL;
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers) {
  char error[512];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", servers, error, sizeof error);
  if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set(conf, "enable.idempotence", "true", error, sizeof error);
  if (type == RD_KAFKA_CONSUMER) {
    rd_kafka_conf_set(conf, "group.id", "hops", error, sizeof error);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", error, sizeof error);
  }
  rd_kafka_t *made = rd_kafka_new(type, conf, error, sizeof error);
  if (!made) fail(error);
  return made;
}

static void kafka(const char *servers, const char *topic, double rate) {
  rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, servers), *consumer = client(RD_KAFKA_CONSUMER, servers);
  const struct rd_kafka_metadata *metadata;
  rd_kafka_topic_t *handle = rd_kafka_topic_new(producer, topic, NULL);
  if (rd_kafka_metadata(producer, 0, handle, &metadata, 30000) || metadata->topic_cnt != 1) fail("the topic is not known");
  rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(metadata->topics[0].partition_cnt);
  for (int number = 0; number < metadata->topics[0].partition_cnt; number++) {
    int64_t low, high;
    if (rd_kafka_query_watermark_offsets(producer, topic, number, &low, &high, 30000)) fail("the ends of the topic are not known");
    rd_kafka_topic_partition_list_add(partitions, topic, number)->offset = high;
  }
  if (rd_kafka_assign(consumer, partitions)) fail("the topic cannot be read");
  pthread_t reader;
  pthread_create(&reader, NULL, consume, consumer);
  char payload[PAYLOAD] = {0};
  int64_t start = now() + 1000000000LL;
  for (long next = 0; next < total;) {
    int64_t due = start + (int64_t)(next / rate * 1e9);
    if (due > now()) {
      rd_kafka_poll(producer, 0);
      sleep_tick();
      continue;
    }
    memcpy(payload, &due, sizeof due);
    if (rd_kafka_produce(handle, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, payload, PAYLOAD, &next, sizeof next, NULL) == 0) next++;
    else rd_kafka_poll(producer, 1);
  }
  rd_kafka_flush(producer, PATIENCE * 1000);
  pthread_join(reader, NULL);
  report();
  // The process ends: the clients need no farewell.
  fflush(stdout);
  _Exit(0);
}

// Redis

static void redis(const char *host, int port, double rate) {
  redisContext *context = redisConnect(host, port);
  if (!context || context->err) fail("Redis does not answer");
  redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", SCRIPT);
  if (!reply || reply->type != REDIS_REPLY_STRING) fail("Redis does not take the script");
  char digest[64], payload[PAYLOAD + 1];
  snprintf(digest, sizeof digest, "%s", reply->str);
  memset(payload, 'x', PAYLOAD);
  payload[PAYLOAD] = 0;
  int64_t start = now();
  for (long next = 0; next < total;) {
    long first = next;
    while (next < total && start + (int64_t)(next / rate * 1e9) <= now()) {
      redisAppendCommand(context, "EVALSHA %s 1 hops%ld %s", digest, next % 1000, payload);
      next++;
    }
    if (next == first) sleep_tick();
    for (long number = first; number < next; number++) {
      if (redisGetReply(context, (void **)&reply) || reply->type != REDIS_REPLY_STRING) fail("Redis fails");
      freeReplyObject(reply);
      taken[count++] = now() - (start + (int64_t)(number / rate * 1e9));
    }
  }
  report();
}

int main(int words, char **word) {
  if (words != 6) fail("usage: hops kafka BOOTSTRAP TOPIC RATE SECONDS | hops redis HOST PORT RATE SECONDS");
  double rate = atof(word[4]);
  total = (long)(rate * atof(word[5]));
  taken = calloc(total + 1, sizeof *taken);
  if (!taken || total < 1) fail("there is nothing to measure");
  if (!strcmp(word[1], "kafka")) kafka(word[2], word[3], rate);
  else redis(word[2], atoi(word[3]), rate);
  return 0;
}
