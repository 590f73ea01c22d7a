internal import JSON
internal import Notifications

/// What another process asks of the device, as the database keeps it until the device has done it.
enum StoredCommand: Sendable, Equatable {
  /// Adds a local request, as its frame, at this time by the clock of its trigger.
  case add(NotifyFrame, at: Int64)
  /// Removes requests that wait.
  case removePending([NotificationShowing])
  /// Removes notifications from the list.
  case removeDelivered([NotificationShowing])
  /// Sets the number at the application's icon.
  case badge(Int)
  /// Registers the application's categories.
  case categories([NotificationCategory])

  /// How many may wait for the device.
  static let maximum = 1_000
  /// How many bytes they may have together. A start carries out all of them before anything else is written.
  static let maximumBytes = 4 << 20

  /// Whether a later command of its kind makes it needless.
  var isReplaceable: Bool { ["badge", "categories"].contains(kind) }

  // MARK: The database

  /// The word for its kind.
  var kind: String {
    switch self {
    case .add: "add"
    case .removePending: "removePending"
    case .removeDelivered: "removeDelivered"
    case .badge: "badge"
    case .categories: "categories"
    }
  }

  /// When the request was added; 0 for another command.
  var at: Int64 { if case .add(_, let at) = self { at } else { 0 } }

  /// What it is about.
  var bytes: [UInt8] {
    switch self {
    case .add(let frame, _): frame.jsonBytes
    case .removePending(let showings), .removeDelivered(let showings): Array(JSONValue.array(showings.map(\.value)).text.utf8)
    case .badge(let number): Array("\(number)".utf8)
    case .categories(let categories): CategoriesFrame(categories: categories).jsonBytes
    }
  }

  /// Reads a command; nil if it is none that this version knows.
  init?(kind: String, at: Int64, bytes: [UInt8]) {
    var value: JSONValue? { bytes.withUnsafeBytes { try? JSONValue(parsing: $0) } }
    switch kind {
    case "add":
      guard let frame = NotifyFrame(stored: bytes) else { return nil }
      self = .add(frame, at: at)
    case "removePending", "removeDelivered":
      guard let showings = value?.elements?.compactMap(NotificationShowing.init) else { return nil }
      self = kind == "removePending" ? .removePending(showings) : .removeDelivered(showings)
    case "badge":
      guard let number = value?.integerValue.flatMap({ Int(exactly: $0) }) else { return nil }
      self = .badge(number)
    case "categories":
      guard let categories = StoredRegistration.categories(bytes) else { return nil }
      self = .categories(categories)
    default: return nil
    }
  }
}

extension NotificationStore {
  /// The identifiers of the requests that wait, among these.
  func pending(_ showings: [NotificationShowing]) -> [Name] {
    // The time of one that waits follows the clock.
    pending.filter { one in showings.contains { $0.identifier == one.identifier && $0.id == Name(one.id) } }.map(\.identifier)
  }

  /// The identifiers of the notifications in the list, among these.
  func delivered(_ showings: [NotificationShowing]) -> [Name] {
    delivered.filter { showings.contains(NotificationShowing($0)) }.map(\.identifier)
  }

  /// Notes what a command is going to change, for the process that has given it.
  ///
  /// A request without a trigger comes into the list when the device has shown it.
  mutating func expect(_ command: StoredCommand) {
    switch command {
    case .add(let frame, let at):
      if frame.trigger == nil { removePending([frame.identifier]) } else { _ = add(frame, localTime: .init(wall: at, elapsed: at)) }
    case .removePending(let showings): removePending(pending(showings))
    case .removeDelivered(let showings): _ = clear(delivered(showings))
    case .badge(let number): setBadge(number)
    case .categories: break
    }
  }
}
