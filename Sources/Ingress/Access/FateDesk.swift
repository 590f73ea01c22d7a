import HTTP
package import Notifications
import Synchronization
import Worker

/// What became of a request.
package struct Fate: Sendable {
  let applications: Set<Name>
  let json: String

  /// Makes a fate.
  ///
  /// - Parameters:
  ///   - applications: those of all records with the request's `apns-id`.
  ///   - json: the object that `carillon explain --json` prints.
  package init(applications: Set<Name>, json: String) { (self.applications, self.json) = (applications, json) }
}

/// Answers questions for the fate of requests: one at a time for a token, and few at once.
package final class FateDesk: Sendable {
  /// Finds a request; nil if there is none. Its target makes that faster.
  package typealias Read = @Sendable (NotificationID, _ target: Name?) async throws -> Fate?

  private static let maximum = 4
  private static let time = Duration.seconds(10)
  /// The tokens whose questions have not ended. The search for one whose time is over ends a little later.
  private let asking = Mutex<Set<Name>>([])
  private let read: Read

  /// Makes a desk for all lanes of a process.
  package init(_ read: @escaping Read) { self.read = read }

  /// Finds a request for a publisher that may publish for its application.
  func find(_ id: NotificationID, target: Name?, for publisher: Publisher) async -> Result<Fate, RequestAnswer> {
    let identity = publisher.identity
    let (isFirst, isFull) = asking.withLock { asking in
      guard asking.count < Self.maximum || asking.contains(identity) else { return (true, true) }
      return (asking.insert(identity).inserted, false)
    }
    guard isFirst else {
      return .failure(RequestAnswer(.tooManyRequests, "TooManyRequests", "Authorization", "A token asks for one request at a time."))
    }
    guard !isFull else { return .failure(.unavailable("Too many publishers ask for requests at once: ask again.")) }
    let search = Task { () -> Result<Fate?, any Error> in
      defer { asking.withLock { _ = $0.remove(identity) } }
      do { return .success(try await read(id, target)) } catch { return .failure(error) }
    }
    switch await search.value(by: .now + Self.time) {
    // Anybody may publish with the apns-id of another's request, and must not read that one's fate thereby.
    case .success(let fate?) where publisher.mayRead(fate): return .success(fate)
    case .success:
      let rule = "There is no request with this apns-id, or the token does not hold for its application."
      return .failure(RequestAnswer(.notFound, "NotFound", "apns-id", rule))
    // The error may name brokers, which are not a publisher's business.
    case .failure: return .failure(.unavailable("Kafka cannot be read. Ask again."))
    case nil:
      search.cancel()
      return .failure(.unavailable("The search takes too long: name the target, as ?target=user:ID, or use 'carillon explain'."))
    }
  }
}
