internal import Notifications

/// What the device has changed about itself and the cluster has not answered yet, as a value.
///
/// A hello says all of it, so a change that was made before a hello is answered by the welcome; only signing out needs a frame in any case.
struct RegistrationChanges {
  enum Change: Equatable {
    case settings(Authorization)
    case locale(locale: String?, timeZone: String?)
    case categories([NotificationCategory])
    case unregister
  }

  private struct Entry {
    let request: String
    let change: Change
    var isInHello = false
    var isSent = false
  }

  private var entries: [Entry] = []
  private let limit: Int

  /// - Parameter limit: how many may wait for an answer.
  init(limit: Int = 64) { self.limit = limit }

  /// Whether the person signed out, and the cluster does not know yet.
  var isLeaving: Bool { entries.contains { $0.change == .unregister } }

  /// Adds a change under the device's own id; false when too many wait.
  mutating func add(_ change: Change, request: String) -> Bool {
    guard entries.count < limit else { return false }
    entries.append(Entry(request: request, change: change))
    return true
  }

  /// A hello is being sent, and says everything that has changed so far.
  mutating func helloSent() {
    for index in entries.indices {
      entries[index].isSent = false
      entries[index].isInHello = entries[index].change != .unregister
    }
  }

  /// The welcome has come: the requests that are answered by it.
  mutating func welcomed() -> [String] {
    let answered = entries.filter(\.isInHello).map(\.request)
    entries.removeAll(where: \.isInHello)
    return answered
  }

  /// What is to be sent now in an open session.
  mutating func next() -> [(request: String, change: Change)] {
    var due: [(request: String, change: Change)] = []
    for index in entries.indices where !entries[index].isSent {
      entries[index].isSent = true
      due.append((entries[index].request, entries[index].change))
    }
    return due
  }

  /// The cluster has answered: what it was, or nil for an id that does not wait.
  mutating func settle(_ request: String) -> Change? {
    guard let index = entries.firstIndex(where: { $0.request == request }) else { return nil }
    return entries.remove(at: index).change
  }
}
