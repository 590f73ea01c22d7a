internal import Notifications

/// The device's changes that the cluster has not answered yet. A value.
///
/// A hello contains all of them, so the welcome answers earlier changes. Only a sign-out always needs a frame.
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

  /// Whether the person signed out, and the cluster has not confirmed it yet.
  var isLeaving: Bool { entries.contains { $0.change == .unregister } }

  /// Adds a change under the device's own id; false if too many wait.
  mutating func add(_ change: Change, request: String) -> Bool {
    guard entries.count < limit else { return false }
    entries.append(Entry(request: request, change: change))
    return true
  }

  /// Notes that a hello is sent, which contains all changes so far.
  mutating func helloSent() {
    for index in entries.indices {
      entries[index].isSent = false
      entries[index].isInHello = entries[index].change != .unregister
    }
  }

  /// Takes the welcome; returns the requests that it answers.
  mutating func welcomed() -> [String] {
    let answered = entries.filter(\.isInHello).map(\.request)
    entries.removeAll(where: \.isInHello)
    return answered
  }

  /// The changes to send now in an open session.
  mutating func next() -> [(request: String, change: Change)] {
    var due: [(request: String, change: Change)] = []
    for index in entries.indices where !entries[index].isSent {
      entries[index].isSent = true
      due.append((entries[index].request, entries[index].change))
    }
    return due
  }

  /// Takes the cluster's answer; returns the change, or nil for an unknown id.
  mutating func settle(_ request: String) -> Change? {
    guard let index = entries.firstIndex(where: { $0.request == request }) else { return nil }
    return entries.remove(at: index).change
  }
}
