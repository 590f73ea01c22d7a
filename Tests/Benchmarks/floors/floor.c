// The floor of the transform stage: what one thread needs for the Kafka and Redis work of requests with one device each. It takes records in
// batches, calls request.lua once for each, produces one delivery for each with the headers copied, and stores offsets. It parses nothing, checks
// nothing, and writes no events.
//
//   floor fill SERVERS TOPIC RECORDS DEVICES BYTES               publishes requests, BYTES long, for devices from FIRST on
//   floor run SERVERS REQUESTS DELIVERIES GROUP HOST PORT SCRIPT reads REQUESTS to its present end
//
// The last line is JSON.
#include <hiredis/hiredis.h>
#include <librdkafka/rdkafka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { FIRST = 10000, BATCH = 500, UNREPORTED = 100000, PARTITIONS = 1024, COLLAPSE_IDS = 4, PATIENCE = 60000 };

static long reported, refused;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "floor: %s: %s\n", what, why);
  exit(1);
}

static double clock_of(clockid_t which) {
  struct timespec time;
  clock_gettime(which, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static double process_cpu(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Kafka

static void report(rd_kafka_t *client, const rd_kafka_message_t *record, void *unused) {
  reported++;
  if (record->err) refused++;
}

// Makes a client with settings in pairs; NULL ends them.
static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, const char *const *settings) {
  char error[512];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  if (rd_kafka_conf_set(conf, "bootstrap.servers", servers, error, sizeof error)) fail("setting", error);
  for (; *settings; settings += 2)
    if (rd_kafka_conf_set(conf, settings[0], settings[1], error, sizeof error)) fail("setting", error);
  if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf, report);
  rd_kafka_t *made = rd_kafka_new(type, conf, error, sizeof error);
  if (!made) fail("client", error);
  return made;
}

static rd_kafka_t *new_producer(const char *servers) {
  static const char *const settings[] = {"enable.idempotence", "true", "linger.ms", "5", "batch.num.messages", "10000",
                                         "queue.buffering.max.messages", "1000000", NULL};
  return client(RD_KAFKA_PRODUCER, servers, settings);
}

// Takes the headers over.
static void produce(rd_kafka_t *producer, rd_kafka_topic_t *topic, int32_t partition, const void *key, size_t key_length, const void *value,
                    size_t length, rd_kafka_headers_t *headers) {
  for (;;) {
    rd_kafka_resp_err_t error = rd_kafka_producev(
        producer, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key, key_length),
        RD_KAFKA_V_VALUE((void *)value, length), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    if (!error) return;
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("produce", rd_kafka_err2str(error));
    rd_kafka_poll(producer, 10);
  }
}

static void finish(rd_kafka_t *producer, long produced) {
  rd_kafka_flush(producer, PATIENCE);
  if (refused || reported != produced) fail("produce", "Kafka did not take every record");
}

// Filling the topic

static void fill(const char *servers, const char *name, long records, long devices, int bytes) {
  rd_kafka_t *producer = new_producer(servers);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, name, NULL);
  char *body = malloc(bytes + 1), *value = malloc(bytes + 256), target[96], id[64], collapse[32];
  memset(body, 'x', bytes);
  body[bytes] = 0;
  for (long number = 0; number < records; number++) {
    int target_length = snprintf(target, sizeof target, "device:%059d%ld", 0, FIRST + number % devices);
    int empty = snprintf(value, bytes + 256, "{\"aps\":{\"alert\":{\"title\":\"Order %ld\",\"body\":\"\"},\"badge\":1}}", number);
    int length = snprintf(value, bytes + 256, "{\"aps\":{\"alert\":{\"title\":\"Order %ld\",\"body\":\"%.*s\"},\"badge\":1}}", number,
                          bytes > empty ? bytes - empty : 0, body);
    snprintf(id, sizeof id, "00000000-0000-4000-8000-%012lx", number);
    snprintf(collapse, sizeof collapse, "order-%ld", number / devices % COLLAPSE_IDS);
    const char *fields[] = {"target", target, "apns-topic", "com.example.shop", "apns-id", id, "apns-collapse-id", collapse,
                            "apns-push-type", "alert"};
    rd_kafka_headers_t *headers = rd_kafka_headers_new(5);
    for (size_t place = 0; place < sizeof fields / sizeof *fields; place += 2)
      rd_kafka_header_add(headers, fields[place], -1, fields[place + 1], -1);
    produce(producer, topic, RD_KAFKA_PARTITION_UA, target, target_length, value, length, headers);
    if (number % 1000 == 0) rd_kafka_poll(producer, 0);
  }
  finish(producer, records);
  printf("{\"filled\": %ld}\n", reported);
}

// The floor

static redisContext *redis;
static char digest[64];

static void load_script(const char *host, int port, const char *path) {
  char text[4096];
  FILE *file = fopen(path, "r");
  if (!file) fail(path, "it cannot be read");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  redis = redisConnect(host, port);
  if (!redis || redis->err) fail("Redis", redis ? redis->errstr : "no memory");
  redisReply *reply = redisCommand(redis, "SCRIPT LOAD %s", text);
  if (!reply || reply->type != REDIS_REPLY_STRING) fail("Redis", "it does not take the script");
  snprintf(digest, sizeof digest, "%s", reply->str);
  freeReplyObject(reply);
}

static void call(const rd_kafka_message_t *record) {
  rd_kafka_headers_t *headers;
  const void *identifier = "";
  size_t identifier_length = 0;
  if (!rd_kafka_message_headers(record, &headers)) rd_kafka_header_get_last(headers, "apns-collapse-id", &identifier, &identifier_length);
  char key[160], revision[24];
  size_t key_length = snprintf(key, sizeof key, "{%.*s}", (int)record->key_len, (const char *)record->key);
  size_t revision_length = snprintf(revision, sizeof revision, "%lld", (long long)record->offset);
  const char *words[] = {"EVALSHA", digest, "1", key, identifier, revision, record->payload, "3600000"};
  size_t lengths[] = {7, strlen(digest), 1, key_length, identifier_length, revision_length, record->len, 7};
  redisAppendCommandArgv(redis, 8, words, lengths);
}

static long answers(long count) {
  long stored = 0;
  for (; count > 0; count--) {
    redisReply *reply;
    if (redisGetReply(redis, (void **)&reply)) fail("Redis", redis->errstr);
    if (reply->type != REDIS_REPLY_ARRAY) fail("Redis", reply->str ? reply->str : "not an array");
    stored += reply->element[0]->integer;
    freeReplyObject(reply);
  }
  return stored;
}

// How many records a topic has, and in how many partitions.
static long size_of(rd_kafka_t *consumer, const char *topic, int *partitions) {
  const struct rd_kafka_metadata *metadata;
  rd_kafka_topic_t *handle = rd_kafka_topic_new(consumer, topic, NULL);
  rd_kafka_resp_err_t error = rd_kafka_metadata(consumer, 0, handle, &metadata, PATIENCE);
  if (error) fail("metadata", rd_kafka_err2str(error));
  *partitions = metadata->topics[0].partition_cnt;
  if (*partitions > PARTITIONS) fail(topic, "it has too many partitions");
  long records = 0;
  for (int number = 0; number < *partitions; number++) {
    int64_t first, end;
    error = rd_kafka_query_watermark_offsets(consumer, topic, number, &first, &end, PATIENCE);
    if (error) fail("offsets", rd_kafka_err2str(error));
    records += end - first;
  }
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(handle);
  return records;
}

static void run(char **word) {
  const char *servers = word[0], *requests = word[1], *group = word[3];
  const char *const settings[] = {"group.id", group, "auto.offset.reset", "earliest", "enable.auto.offset.store", "false", "fetch.wait.max.ms",
                                  "10", "queued.min.messages", "10000000", "queued.max.messages.kbytes", "1048576", NULL};
  rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, servers, settings), *producer = new_producer(servers);
  rd_kafka_poll_set_consumer(consumer);
  load_script(word[4], atoi(word[5]), word[6]);
  rd_kafka_topic_t *deliveries = rd_kafka_topic_new(producer, word[2], NULL);
  int partitions;
  long total = size_of(consumer, requests, &partitions), taken = 0, stored = 0;
  rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, requests, RD_KAFKA_PARTITION_UA);
  if (rd_kafka_subscribe(consumer, topics)) fail(requests, "it cannot be read");
  rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);

  double start = 0, thread = 0;
  while (taken < total) {
    rd_kafka_message_t *batch[BATCH];
    ssize_t fetched = rd_kafka_consume_batch_queue(queue, 100, batch, BATCH);
    int count = 0;
    for (ssize_t place = 0; place < fetched; place++) {
      if (batch[place]->err) rd_kafka_message_destroy(batch[place]);
      else batch[count++] = batch[place];
    }
    if (!count) continue;
    if (!taken) start = clock_of(CLOCK_MONOTONIC), thread = clock_of(CLOCK_THREAD_CPUTIME_ID);
    for (int place = 0; place < count; place++) call(batch[place]);
    stored += answers(count);
    int64_t next[PARTITIONS] = {0};
    for (int place = 0; place < count; place++) {
      rd_kafka_message_t *record = batch[place];
      rd_kafka_headers_t *headers;
      headers = rd_kafka_message_headers(record, &headers) ? rd_kafka_headers_new(1) : rd_kafka_headers_copy(headers);
      produce(producer, deliveries, record->partition, record->key, record->key_len, record->payload, record->len, headers);
      next[record->partition] = record->offset + 1;
      rd_kafka_message_destroy(record);
    }
    taken += count;
    rd_kafka_poll(producer, taken - reported > UNREPORTED ? 50 : 0);
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(partitions);
    for (int number = 0; number < partitions; number++)
      if (next[number]) rd_kafka_topic_partition_list_add(offsets, requests, number)->offset = next[number];
    rd_kafka_offsets_store(consumer, offsets);
    rd_kafka_topic_partition_list_destroy(offsets);
  }
  finish(producer, taken);
  double seconds = clock_of(CLOCK_MONOTONIC) - start;
  printf("{\"records\": %ld, \"stored\": %ld, \"seconds\": %.3f, \"records_per_second\": %.0f, \"thread_cpu_us\": %.2f, \"process_cpu_us\": %.2f}\n",
         taken, stored, seconds, taken / seconds, (clock_of(CLOCK_THREAD_CPUTIME_ID) - thread) * 1e6 / taken, process_cpu() * 1e6 / taken);
  rd_kafka_consumer_close(consumer);
}

int main(int words, char **word) {
  if (words == 7 && !strcmp(word[1], "fill")) fill(word[2], word[3], atol(word[4]), atol(word[5]), atoi(word[6]));
  else if (words == 9 && !strcmp(word[1], "run")) run(word + 2);
  else fail("usage", "floor fill SERVERS TOPIC RECORDS DEVICES BYTES | floor run SERVERS REQUESTS DELIVERIES GROUP HOST PORT SCRIPT");
  return 0;
}
