// Copies the first records of a topic's partitions into the partitions of the same numbers of another topic, with their headers and one more:
// the least that a replay does. Prints one JSON line.
//
//   copies HOST:PORT SOURCE DESTINATION PARTITION:END...
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int64_t acknowledged, failed;

static void reported(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (message->err) failed++;
  else acknowledged++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char error[512];
  if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
    fprintf(stderr, "%s\n", error);
    exit(2);
  }
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
  char error[512];
  rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
  if (!client) {
    fprintf(stderr, "%s\n", error);
    exit(2);
  }
  return client;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
  if (count < 5) {
    fprintf(stderr, "usage: copies HOST:PORT SOURCE DESTINATION PARTITION:END...\n");
    return 2;
  }
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", words[1]);
  set(conf, "group.id", "copies");
  set(conf, "enable.auto.commit", "false");
  set(conf, "auto.offset.reset", "earliest");
  rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, conf);
  rd_kafka_poll_set_consumer(consumer);
  conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", words[1]);
  set(conf, "enable.idempotence", "true");
  set(conf, "linger.ms", "20");
  set(conf, "queue.buffering.max.messages", "1000000");
  rd_kafka_conf_set_dr_msg_cb(conf, reported);
  rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, conf);
  rd_kafka_topic_t *destination = rd_kafka_topic_new(producer, words[3], NULL);

  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
  int64_t left = 0, ends[4096] = {0};
  for (int place = 4; place < count; place++) {
    int number;
    int64_t end;
    if (sscanf(words[place], "%d:%" SCNd64, &number, &end) != 2 || number < 0 || number >= 4096) return 2;
    left += ends[number] = end;
    rd_kafka_topic_partition_list_add(list, words[2], number)->offset = 0;
  }
  int64_t total = left;
  double begin = now();
  rd_kafka_assign(consumer, list);
  rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
  rd_kafka_message_t *messages[1000];
  while (left > 0) {
    ssize_t taken = rd_kafka_consume_batch_queue(queue, 100, messages, 1000);
    for (ssize_t place = 0; place < taken; place++) {
      rd_kafka_message_t *message = messages[place];
      if (!message->err && message->offset < ends[message->partition]) {
        left--;
        rd_kafka_headers_t *headers = NULL, *copy;
        copy = rd_kafka_message_headers(message, &headers) ? rd_kafka_headers_new(1) : rd_kafka_headers_copy(headers);
        char text[32];
        int length = snprintf(text, sizeof text, "%" PRId64, message->offset);
        rd_kafka_header_add(copy, "copied", -1, text, length);
        while (rd_kafka_producev(
                 producer, RD_KAFKA_V_RKT(destination), RD_KAFKA_V_PARTITION(message->partition), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                 RD_KAFKA_V_KEY(message->key, message->key_len), RD_KAFKA_V_VALUE(message->payload, message->len), RD_KAFKA_V_HEADERS(copy),
                 RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
          rd_kafka_poll(producer, 10);
      }
      rd_kafka_message_destroy(message);
    }
    rd_kafka_poll(producer, 0);
  }
  rd_kafka_flush(producer, 60000);
  double seconds = now() - begin;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double spent = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  printf(
    "{\"records\": %" PRId64 ", \"failed\": %" PRId64 ", \"records_per_second\": %.0f, \"cpu_us\": %.2f}\n", acknowledged, failed,
    total / seconds, spent * 1e6 / (total ? total : 1));
  return acknowledged == total ? 0 : 1;
}
