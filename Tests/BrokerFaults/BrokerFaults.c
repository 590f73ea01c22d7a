#include "BrokerFaults.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

int broker_fail(void *cluster, int16_t request, const int32_t *errors, size_t count) {
  rd_kafka_mock_push_request_errors_array(cluster, request, count, (const rd_kafka_resp_err_t *)errors);
  return 0;
}

int broker_clear(void *cluster, int16_t request) {
  rd_kafka_mock_clear_request_errors(cluster, request);
  return 0;
}

int broker_set_down(void *cluster, int32_t broker) { return rd_kafka_mock_broker_set_down(cluster, broker); }

int broker_set_up(void *cluster, int32_t broker) { return rd_kafka_mock_broker_set_up(cluster, broker); }

int broker_set_round_trip(void *cluster, int32_t broker, int milliseconds) {
  return rd_kafka_mock_broker_set_rtt(cluster, broker, milliseconds);
}

int broker_set_leader(void *cluster, const char *topic, int32_t partition, int32_t broker) {
  return rd_kafka_mock_partition_set_leader(cluster, topic, partition, broker);
}
