import Transform
import Worker

/// `carillon transform`.
enum TransformCommand {
  static let command = Command(
    "transform", "runs transform workers: requests in, deliveries and events out",
    discussion:
      "Runs until SIGTERM or SIGINT. Kafka or Redis may start later: until then it waits, is not ready, and reports the missing one. With --json one line on standard output has the address of its admin server, when it is ready.",
    groups: [
      RoleSettings.process, ClusterSettings.group, TransformOptions.stage, MediaOptions.keeping, RequestSettings.group,
      TLSOptions.adminGroup,
      LogSettings.group,
    ],
    examples: [Example("transform --kafka broker:9092 --redis redis:6379 --lanes 4 --admin 0.0.0.0:9464", "a worker of a cluster")]
  ) { values in
    let place = try ClusterPlace(values, client: "carillon-transform")
    let process = try RoleProcess("transform", values)
    let extensions = try await ExtensionsInForce(values, process.logger, process.metrics)
    let permit = CrashLoopPermit()
    let members = MemberWatch(
      place.kafka, place.store, group: values[TransformOptions.group], reading: place.topics.requests,
      isNamed: values[RoleSettings.worker] != nil, logger: process.logger)
    return try await process.run(
      place, writing: place.topics.writtenByTransform, settings: SharedSettings.transform(values, extensions.source),
      rereading: extensions.files,
      whenEnded: {
        // Its lanes have left the group: nobody is to take them for silent.
        await members.close()
        await extensions.close()
      }
    ) { process, number, _ in
      let metrics = TransformMetrics(process.metrics, lane: "transform-\(number)")
      return process.host("transform-\(number)") { lane in
        TransformLane(
          TransformSettings(
            process.values, place, worker: process.worker(number), extensions: extensions.source, permit: permit, members: members),
          in: lane, metrics: metrics)
      }
    }
  }
}
