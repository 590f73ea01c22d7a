#ifndef BROKER_FAULTS_H
#define BROKER_FAULTS_H

#include <stddef.h>
#include <stdint.h>

// Faults of librdkafka's mock cluster. Each answers librdkafka's code of an error; 0 for success.

// The next requests of this kind fail, one error each.
int broker_fail(void *cluster, int16_t request, const int32_t *errors, size_t count);
// Requests of this kind succeed again.
int broker_clear(void *cluster, int16_t request);
// A broker, or all with -1, refuses connections, or takes them again.
int broker_set_down(void *cluster, int32_t broker);
int broker_set_up(void *cluster, int32_t broker);
// Each answer is delayed.
int broker_set_round_trip(void *cluster, int32_t broker, int milliseconds);
// A broker leads a partition; with -1 none does.
int broker_set_leader(void *cluster, const char *topic, int32_t partition, int32_t broker);

#endif
