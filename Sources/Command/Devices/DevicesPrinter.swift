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
    let (isConnected, lanes, partition): (Bool, [Name]?, Int32?) =
      switch listing.connection {
      case .none: (false, nil, nil)
      case .lanes(let lanes, let partition): (true, lanes, partition)
      case .gone(let partition): (false, nil, partition)
      }
    return .object(present: [
      "device": device.token, "registered": device.owner != nil, "application": device.membership?.application,
      "user": device.membership?.user, "since": device.since.map(Timestamp.text), "locale": device.locale,
      "registration": device.registration.map { JSONValue.object(["partition": $0.partition, "offset": $0.offset]) },
      "connected": isConnected, "lanes": lanes, "laneGone": !isConnected && partition != nil ? true : nil, "partition": partition,
      "notifications": device.mailbox?.entries.json ?? .null, "oldest": device.mailbox?.oldest.map(Timestamp.text),
      "mailboxBound": listing.bound, "beyondBound": listing.overBound,
      "evicted": device.gap.map { JSONValue.object(["from": text($0.from), "to": text($0.to)]) },
    ])
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
