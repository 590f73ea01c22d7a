public import EventLoop
public import Kafka
public import Notifications

/// What a search for a request may use.
public struct SearchHints: Sendable {
  /// Its target: `device:…` or `user:…`. The events of a device lie in one partition.
  public var target: String?
  /// When it was published.
  public var published: TimeRange

  /// Hints; without any all topics are searched, the newest records first.
  public init(target: String? = nil, published: TimeRange = TimeRange()) {
    self.target = target
    self.published = published
  }
}

/// Finds everything about a request: an actor on a loop.
///
/// An event names where its request lies: when one is found the request is read there, and the events from its publication on. The
/// events' partition follows from the target where that is a device.
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
  public func explain(_ id: NotificationID, _ hints: SearchHints) async throws -> Explanation {
    let admin = try Admin(kafka)
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    let search = RequestSearch(id, rules, admin, reader)
    do {
      try await search.run(hints)
      await admin.close()
    } catch {
      await admin.close()
      throw error
    }
    return search.timeline.explanation(now: WallClock.milliseconds(), searched: search.searched)
  }
}
