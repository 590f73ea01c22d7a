import EventLoop
import HTTP
import Ingress
import JSON
import Notifications
import Operations
import Worker

/// `carillon ingress`.
enum IngressCommand {
  static let command = Command(
    "ingress", "runs ingress workers: backends publish requests to them by HTTP",
    discussion:
      "POST /v1/requests takes a request as an object with the members of 'publish --lines', many of them (Content-Type: application/x-ndjson), or an APNs payload with its headers. It answers 202 when Kafka has the request. GET /v1/requests/APNS-ID answers as 'explain --json'. Runs until SIGTERM or SIGINT. Kafka may start later: until then it waits, is not ready, and reports it. It needs Redis only to appear in 'carillon status'. With --json one line on standard output has the address for requests and that of its admin server, when it is ready.",
    groups: [
      IngressOptions.requests, RoleSettings.process, ClusterSettings.group, RequestSettings.group, TLSOptions.adminGroup, LogSettings.group,
    ],
    examples: [
      Example(
        "ingress --kafka broker:9092 --redis redis:6379 --listen 0.0.0.0:7174 --key-file publishers.key --admin 0.0.0.0:9464",
        "a worker of a cluster")
    ]
  ) { values in
    let place = try ClusterPlace(values, client: "carillon-ingress")
    let process = try RoleProcess("ingress", values, connections: values[IngressOptions.connections])
    let keys = try IngressOptions.keys(values, process.logger)
    if keys == nil {
      process.logger.warning("any program may publish, since no --key-file is given; this is for development only")
    }
    let fates = FateDesk.ofCluster(place, values, process.logger)
    return try await process.run(
      place, writing: place.topics.writtenByIngress, listen: IngressOptions.listen, unreadyFor: values[IngressOptions.unreadyFor],
      serving: .requests, settings: SharedSettings.ingress(values, keys: keys?.content), rereading: keys?.files
    ) { process, number, first in
      let metrics = IngressMetrics(process.metrics, lane: "ingress-\(number)")
      return process.host("ingress-\(number)") { lane in
        var settings = IngressSettings(
          process.values, place, listen: lane.address ?? first ?? process.values[IngressOptions.listen],
          admission: keys.map { .token($0.content) } ?? .anyone)
        settings.server.tls = process.tls?.server()
        settings.server.maximumConnections = process.values[IngressOptions.connections]
        settings.server.maximumBodyBytes = process.values[IngressOptions.bodyBytes]
        settings.logsAccess = process.values[IngressOptions.access]
        settings.server.maximumDescriptor = process.descriptors.maximum
        settings.server.reusePort = process.values[RoleSettings.lanes] > 1
        return IngressLane(settings, in: lane, fates: fates, metrics: metrics)
      }
    }
  }
}

extension FateDesk {
  /// Finds requests as `carillon explain` does. Each question has a loop of its own.
  static func ofCluster(_ place: ClusterPlace, _ values: SettingValues, _ logger: Logger) -> FateDesk {
    let (kafka, rules) = (place.kafka, RequestRules(values, topics: place.topics))
    let printer = TimelinePrinter(prefix: place.topics.prefix)
    return FateDesk { id, target in
      let loop = EventLoop(name: "explain")
      let found: SearchResult
      do {
        found = try await ClusterTool(on: loop, kafka, rules).explain(.request(id), target: target)
      } catch {
        logger.warning("the search for a request ended early", ["apnsId": "\(id)", "error": "\(error)"])
        await loop.close()
        throw error
      }
      await loop.close()
      guard let explanation = found.explanations.first(where: \.isFound) else { return nil }
      return Fate(explanation, printer)
    }
  }
}

extension Fate {
  /// Makes the fate of a request. It names no application of the target's devices beside those that must be the reader's.
  init(_ explanation: Explanation, _ printer: TimelinePrinter) {
    let occurrences = explanation.schedule?.occurrences ?? []
    let applications = occurrences.reduce(explanation.applications) { $0.union($1.applications) }
    var shown = explanation
    shown.registered = explanation.registered?.filter { applications.contains($0.key) }
    self.init(applications: applications, json: printer.json(shown).text)
  }
}
