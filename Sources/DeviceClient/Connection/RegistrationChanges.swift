internal import JSON
internal import Notifications

/// The device's changes that the cluster has not answered yet. A value.
///
/// A hello contains most of them, so the welcome answers earlier ones. A sign-out and quiet hours always need a frame.
///
/// One change of a kind is with the cluster at a time. A newer one replaces a change of its kind that is not sent, and takes its id. So a few
/// changes wait at most, however long the cluster does not answer.
struct RegistrationChanges {
  enum Change: Equatable {
    case settings(Authorization)
    case locale(locale: String?, timeZone: String?)
    case categories([NotificationCategory])
    case quietHours(QuietHours?)
    case unregister
  }

  private struct Entry {
    let request: Name
    var change: Change
    var isInHello = false
    var isSent = false
  }

  private var entries: [Entry] = []

  /// How many wait for an answer.
  var count: Int { entries.count }

  /// Adds a change under the device's own id; returns the id that the cluster's answer has.
  mutating func add(_ change: Change, request: Name) -> Name {
    guard let index = entries.lastIndex(where: { !$0.isSent && $0.change.kind == change.kind }) else {
      entries.append(Entry(request: request, change: change))
      return request
    }
    entries[index].change = change.after(entries[index].change)
    // A hello that is sent already has the former one.
    entries[index].isInHello = false
    return entries[index].request
  }

  /// Drops the sign-out, since the program registers the device again; false if it is sent already.
  @discardableResult mutating func stay() -> Bool {
    guard !entries.contains(where: { $0.change == .unregister && $0.isSent }) else { return false }
    entries.removeAll { $0.change == .unregister }
    return true
  }

  /// Drops what only the person can want, since the person has signed out.
  mutating func forgetPerson() { entries.removeAll { !$0.change.isOfHello } }

  /// Notes that a hello is sent, with the changes that it contains.
  mutating func helloSent() {
    for index in entries.indices { entries[index].isInHello = entries[index].change.isOfHello }
  }

  /// Takes the welcome; returns the requests that it answers.
  mutating func welcomed() -> [Name] {
    let answered = entries.filter(\.isInHello).map(\.request)
    entries.removeAll(where: \.isInHello)
    return answered
  }

  /// The changes to send now in an open session, in their order.
  mutating func next() -> [(request: Name, change: Change)] {
    var due: [(request: Name, change: Change)] = []
    for index in entries.indices where !entries[index].isSent {
      let kind = entries[index].change.kind
      guard !entries.contains(where: { $0.isSent && $0.change.kind == kind }) else { break }
      entries[index].isSent = true
      due.append((entries[index].request, entries[index].change))
    }
    return due
  }

  /// Takes the cluster's answer; returns the change, or nil for an unknown id.
  mutating func settle(_ request: Name) -> Change? {
    guard let index = entries.firstIndex(where: { $0.isSent && $0.request == request }) else { return nil }
    return entries.remove(at: index).change
  }

  /// The session has ended: its answers will not come.
  mutating func sessionEnded() {
    for index in entries.indices { (entries[index].isSent, entries[index].isInHello) = (false, false) }
  }
}

extension RegistrationChanges.Change {
  enum Kind { case settings, locale, categories, quietHours, unregister }

  /// What it changes. A newer change of the kind replaces it.
  var kind: Kind {
    switch self {
    case .settings: .settings
    case .locale: .locale
    case .categories: .categories
    case .quietHours: .quietHours
    case .unregister: .unregister
    }
  }

  /// Whether a hello contains it.
  var isOfHello: Bool { kind != .quietHours && kind != .unregister }

  /// The change that this one and an earlier one of its kind make together.
  fileprivate func after(_ former: Self) -> Self {
    guard case .locale(let locale, let timeZone) = self, case .locale(let formerLocale, let formerZone) = former else { return self }
    return .locale(locale: locale ?? formerLocale, timeZone: timeZone ?? formerZone)
  }

  /// Makes the change in a hello.
  func apply(to hello: inout Hello) {
    switch self {
    case .settings(let authorization): hello.authorization = authorization
    case .locale(let locale, let timeZone):
      hello.locale = locale ?? hello.locale
      hello.timeZone = timeZone ?? hello.timeZone
    case .categories(let categories): hello.categories = categories
    case .quietHours, .unregister: break
    }
  }

  /// Its frame.
  func frame(_ request: Name) -> any JSONWritable {
    switch self {
    case .settings(let authorization): SettingsFrame(request: request.text, authorization: authorization)
    case .locale(let locale, let timeZone): SettingsFrame(request: request.text, locale: locale, timeZone: timeZone)
    case .categories(let categories): CategoriesFrame(request: request.text, categories: categories)
    case .quietHours(let hours): SettingsFrame(request: request.text, person: PersonSettings(quiet: hours))
    case .unregister: UnregisterFrame(request: request.text)
    }
  }
}
