public import EventLoop
public import Kafka
public import Notifications

/// Which requests are asked for.
public enum RequestQuestion: Sendable {
  /// The one of this id.
  case request(NotificationID)
  /// Those whose header `apns-id` has this text, which is no UUID: they were rejected, and have derived ids.
  case written(String)
  /// The latest ones for a person and for the devices registered for it, of one application or of all.
  case person(Name, application: Name?, limit: Int)
  /// The latest ones with this target.
  case target(Name, application: Name?, limit: Int)
}

/// What a search may use.
public struct SearchHints: Sendable {
  /// The request's target: `device:…` or `user:…`. The requests for it lie in one partition, and so do the events of a device.
  public var target: Name?
  /// When it was published.
  public var published: TimeRange

  /// Hints; without any all topics are searched, the newest records first.
  public init(target: Name? = nil, published: TimeRange = TimeRange()) {
    self.target = target
    self.published = published
  }
}

/// What a search has found.
public struct SearchResult: Sendable {
  /// The requests, the one that was published last first.
  public var explanations: [Explanation]
  /// Where was looked, for the one who finds nothing.
  public var searched: [String]
  /// Records of requests, the journal and events that the embedded broker has dropped; 0 on any other cluster.
  public var forgotten: Int64
}

/// Finds everything about requests: an actor on a loop.
///
/// When its record is found, the journal is read around its publication, and the events from then on; their partition follows from the
/// target where that is a device. When the record is gone, an event names where it lay.
public actor Explainer {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes one for a cluster.
  ///
  /// - Parameter onProgress: told once a second while a topic is read.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, onProgress: @escaping @Sendable (ReadingProgress) -> Void
  ) {
    self.loop = loop
    self.kafka = kafka
    self.rules = rules
    self.onProgress = onProgress
  }

  /// Searches, and puts together what it found.
  public func explain(_ question: RequestQuestion, _ hints: SearchHints) async throws -> SearchResult {
    let rules = try await ClusterCheck(on: loop, kafka, rules.topics).completing(rules)
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    let (search, forgotten) = try await Admin.with(kafka) { admin in
      let search = RequestSearch(question, rules, admin, reader)
      try await search.run(hints)
      return (search, try await admin.forgottenRecords(rules.topics))
    }
    return SearchResult(
      explanations: search.explanations(now: WallClock.milliseconds()), searched: search.searched, forgotten: forgotten)
  }
}
