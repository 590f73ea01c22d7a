package import EventLoop
package import Kafka
package import Notifications
import Synchronization
package import Worker

/// The requests to explain.
package enum RequestQuestion: Sendable {
  /// The one of this id.
  case request(NotificationID)
  /// Requests whose header `apns-id` has this text, which is not a UUID. They were rejected and have derived ids.
  case written(String)
  /// The latest requests for a person and the person's devices, of one application or of all.
  case person(Name, application: Name?, limit: Int)
  /// The latest requests with this target.
  case target(Name, application: Name?, limit: Int)
}

/// Hints that make a search faster.
package struct SearchHints: Sendable {
  /// The request's target: `device:…` or `user:…`. Its requests lie in one partition, and so do the events of a device.
  package var target: Name?
  /// The time of publication.
  package var published: TimeRange

  /// Makes hints. Without any, all topics are searched, the newest records first.
  package init(target: Name? = nil, published: TimeRange = TimeRange()) {
    self.target = target
    self.published = published
  }
}

/// The result of a search.
package struct SearchResult: Sendable {
  /// The requests, the last published first.
  package var explanations: [Explanation]
  /// The places that were searched, for a message if nothing was found.
  package var searched: [String]
  /// Records of requests, the journal and events that the embedded broker has dropped; 0 on any other cluster.
  package var forgotten: Int64
}

/// Finds all records about requests: an actor on a loop.
///
/// After it finds a request, it reads the journal around the publication, and the events from then on. For a device the target gives the
/// events' partition. If the request's record is deleted, an event names its place.
package actor Explainer: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes an explainer of a cluster.
  ///
  /// - Parameter onProgress: called once a second while a topic is read.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, onProgress: @escaping @Sendable (ReadingProgress) -> Void
  ) {
    self.loop = loop
    self.kafka = kafka
    self.rules = rules
    self.onProgress = onProgress
  }

  /// Searches, and builds the explanations. Cancelling the task ends the search within about a second.
  package func explain(_ question: RequestQuestion, _ hints: SearchHints) async throws -> SearchResult {
    let cancellation = Cancellation()
    return try await withTaskCancellationHandler {
      try await explain(question, hints, cancellation)
    } onCancel: {
      cancellation.isCanceled.store(true, ordering: .relaxed)
    }
  }

  private final class Cancellation: Sendable {
    let isCanceled = Atomic(false)
  }

  private func explain(_ question: RequestQuestion, _ hints: SearchHints, _ cancellation: Cancellation) async throws -> SearchResult {
    let rules = try await ClusterCheck(on: loop, kafka, rules.topics).completing(rules)
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    reader.isCanceled = { cancellation.isCanceled.load(ordering: .relaxed) }
    let (search, forgotten) = try await Admin.with(kafka) { admin in
      let search = RequestSearch(question, rules, admin, reader)
      try await search.run(hints)
      return (search, try await admin.forgottenRecords(rules.topics))
    }
    return SearchResult(
      explanations: search.explanations(now: WallClock.milliseconds()), searched: search.searched, forgotten: forgotten)
  }
}
