import EventLoop
import Kafka
package import Notifications
import Synchronization
import Worker

/// The requests to explain.
package enum RequestQuestion: Sendable {
  /// The one of this id.
  case request(NotificationID)
  /// Requests whose header `apns-id` has this text, which is not a UUID. They were rejected and have derived ids.
  case written(String)
  /// The latest requests for this target, of one application or of all. A person's devices belong to the person.
  case latest(Name, application: Name?, limit: Int)
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

/// Finds all records about requests.
///
/// After it finds a request, it reads the journal around the publication, and the events from then on. For a device the target gives the
/// events' partition. If the request's record is deleted, an event names its place.
extension ClusterTool {
  /// Searches, and builds the explanations. Cancelling the task ends the search within about a second.
  ///
  /// Without hints all topics are searched, the newest records first.
  ///
  /// - Parameters:
  ///   - target: a hint: the request's target, `device:…` or `user:…`. Its requests lie in one partition, and so do the events of a device.
  ///   - published: a hint: the time of publication.
  package func explain(_ question: RequestQuestion, target: Name?, published: TimeRange = TimeRange()) async throws -> SearchResult {
    let cancellation = Cancellation()
    return try await withTaskCancellationHandler {
      let rules = try await completeRules()
      let reader = reader
      reader.isCanceled = { cancellation.isCanceled.load(ordering: .relaxed) }
      return try await Admin.with(kafka) { admin in
        let search = RequestSearch(question, rules, admin, reader)
        try await search.run(target, published)
        return SearchResult(
          explanations: search.explanations(now: WallClock.milliseconds()), searched: search.searched,
          forgotten: try await admin.forgottenRecords(rules.topics))
      }
    } onCancel: {
      cancellation.isCanceled.store(true, ordering: .relaxed)
    }
  }

  private final class Cancellation: Sendable {
    let isCanceled = Atomic(false)
  }
}
