import JSON
import Notifications
import Operations
import Store

/// Registered devices, for a person or for a program.
struct DevicesPrinter: Sendable {
  /// Milliseconds since 1970.
  let now: Int64
  /// The characters of a line; nil for any number.
  let width: Int?

  // MARK: For a person

  /// Renders a device in one line, with its whole token, since the person types it next.
  func line(_ listing: DeviceListing) -> String {
    let device = listing.device
    var columns = [device.token]
    if let (application, user) = device.membership {
      columns += [TerminalText.word("application", application), TerminalText.word("user", user)]
    } else {
      columns.append(device.owner == nil ? "not registered" : "nobody is signed in")
    }
    if let since = device.since { columns.append("since " + Timestamp.text(since)) }
    if let locale = device.locale { columns.append(TerminalText.word("locale", locale)) }
    if let stamp = device.registration { columns.append("registration=devices/\(stamp.partition)@\(stamp.offset)") }
    return TerminalText.row(columns + [connection(listing.connection), mailbox(listing)], width: width)
  }

  private func connection(_ connection: DeviceListing.Connection) -> String {
    switch connection {
    case .none: "not connected"
    case .lanes(let lanes, _): "connected at " + lanes.map(TerminalText.visible).joined(separator: " or ")
    case .gone(let partition): "was connected at a lane that is gone (deliveries/\(partition))"
    }
  }

  private func mailbox(_ listing: DeviceListing) -> String {
    guard let mailbox = listing.device.mailbox else { return "its mailbox cannot be read" }
    var words = mailbox.entries == 0 ? ["nothing waits"] : ["\(TerminalText.count(mailbox.entries, "notification")) wait"]
    if mailbox.entries == 1 { words = ["1 notification waits"] }
    if let oldest = mailbox.oldest { words.append("the oldest \(TerminalText.duration(max(0, now - oldest))) old") }
    if let over = listing.overBound, over > 0, let bound = listing.bound { words.append("\(over) beyond the bound of \(bound)") }
    if let gap = listing.device.gap {
      words.append("evicted since the device was told last: from \(text(gap.from)) to \(text(gap.to))")
    }
    return words.joined(separator: ", ")
  }

  private func text(_ revision: Revision) -> String { Timestamp.text(revision.time) }

  // MARK: For a program

  /// Renders a device as an object.
  func json(_ listing: DeviceListing) -> JSONValue {
    let device = listing.device
    var members: [JSONValue.Member] = [
      .init(key: "device", value: .string(device.token)), .init(key: "registered", value: .bool(device.owner != nil)),
    ]
    func add(_ key: String, _ value: JSONValue?) { if let value { members.append(.init(key: key, value: value)) } }
    add("application", device.membership.map { .string($0.application.text) })
    add("user", device.membership.map { .string($0.user.text) })
    add("since", device.since.map { .string(Timestamp.text($0)) })
    add("locale", device.locale.map { .string($0) })
    add("registration", device.registration.map { ["partition": .integer(Int64($0.partition)), "offset": .integer($0.offset)] })
    switch listing.connection {
    case .none: add("connected", .bool(false))
    case .lanes(let lanes, let partition):
      add("connected", .bool(true))
      add("lanes", .array(lanes.map { .string($0.text) }))
      add("partition", .integer(Int64(partition)))
    case .gone(let partition):
      add("connected", .bool(false))
      add("laneGone", .bool(true))
      add("partition", .integer(Int64(partition)))
    }
    add("notifications", device.mailbox.map { .integer(Int64($0.entries)) } ?? .null)
    add("oldest", device.mailbox?.oldest.map { .string(Timestamp.text($0)) })
    add("mailboxBound", listing.bound.map { .integer(Int64($0)) })
    add("beyondBound", listing.overBound.map { .integer(Int64($0)) })
    add("evicted", device.gap.map { ["from": .string(text($0.from)), "to": .string(text($0.to))] })
    return .object(members)
  }
}

extension RegisteredDevices.Device {
  /// Since when it belongs to its person, or since when it is registered if nobody is signed in.
  fileprivate var since: Int64? { owner.map { Timestamp.bounded(Int64(clamping: $0.since)) } }
}

extension Revision {
  /// The time of publication, in milliseconds since 1970.
  fileprivate var time: Int64 { Timestamp.bounded(Int64(clamping: timestamp)) }
}
