import FanOut
import Worker

/// `carillon fan-out`.
enum FanOutCommand {
  static let command = Command(
    "fan-out", "runs fan-out workers: they hold the devices' connections and deliver",
    discussion:
      "Runs until SIGTERM or SIGINT. Then it is not ready, continues for --unready-for, and tells its devices when to reconnect. Kafka or Redis may start later: until then it waits, is not ready, and reports the missing one. With --json one line on standard output has the devices' address and that of its admin server, when it is ready.",
    groups: [
      SettingGroup("Devices", [FanOutOptions.listen, FanOutOptions.web]), RoleSettings.process, ClusterSettings.group,
      FanOutOptions.sessions, TLSOptions.group,
      MediaOptions.serving,
      SettingGroup("Requests", [], advanced: [RequestSettings.longestLifetime, RequestSettings.oneAttempt]), LogSettings.group,
    ],
    examples: [
      Example(
        "fan-out --kafka broker:9092 --redis redis:6379 --listen 0.0.0.0:7171 --key-file cluster.key --admin 0.0.0.0:9464",
        "a worker of a cluster")
    ]
  ) { values in
    let place = try ClusterPlace(values, client: "carillon-fan-out")
    let process = try RoleProcess(
      "fan-out", values, connections: values[FanOutOptions.connections], servesMedia: values[MediaOptions.folder] != nil)
    guard process.tls != nil || values[TLSOptions.listenPlain] == nil else {
      throw UsageError(.contradiction, "--listen-plain needs --tls-certificate and --tls-key: without them --listen takes no TLS")
    }
    let keys = try FanOutOptions.keys(values, process.logger)
    if keys == nil { process.logger.warning("any device may connect, since no --key-file is given; this is for development only") }
    let media = try await values.listening(by: MediaOptions.listen) {
      try await MediaOptions.serve(values, at: values[MediaOptions.listen], keys: keys?.content, cluster: place.name, of: process)
    }
    return try await process.run(
      place, writing: place.topics.writtenByFanOut, listen: FanOutOptions.listen, unreadyFor: values[FanOutOptions.unreadyFor],
      settings: SharedSettings.fanOut(values, keys: keys?.content), rereading: keys?.files,
      whenEnding: { await media?.server.close(withinMilliseconds: $0) }
    ) { process, number, first in
      let metrics = FanOutMetrics(process.metrics, lane: "fan-out-\(number)")
      return process.host("fan-out-\(number)") { lane in
        var settings = FanOutSettings(
          process.values, place, listen: lane.address ?? first ?? process.values[FanOutOptions.listen], keys: keys?.content,
          worker: process.worker(number))
        settings.tls = process.tls?.server(
          ticketSecrets: keys?.content, handshakesPerSecond: process.values[FanOutOptions.handshakesPerSecond])
        settings.listenPlain = process.values[TLSOptions.listenPlain]
        settings.media = media?.links
        settings.servesWeb = process.values[FanOutOptions.web]
        settings.maximumDescriptor = process.descriptors.maximum
        settings.sharesPort = process.values[RoleSettings.lanes] > 1
        return FanOutLane(settings, in: lane, metrics: metrics)
      }
    }
  }
}
