package import Calendars
import EventLoop
import JSON
package import Notifications
import Worker

/// A request as the record to produce.
package struct RequestToSend: Sendable {
  /// Its line in the file, from 1 on; 0 for flags.
  package let line: Int
  /// Its `apns-id` in the header.
  package let id: String
  /// The record's key.
  package let key: [UInt8]
  /// The record's headers in their order.
  package let headers: [(name: String, value: String)]
  /// The record's value.
  package let value: [UInt8]?

  /// Makes a record of its parts.
  package init(line: Int, id: String, key: [UInt8], headers: [(name: String, value: String)], value: [UInt8]?) {
    (self.line, self.id, self.key, self.headers, self.value) = (line, id, key, headers, value)
  }

  /// What a request that keeps every rule is about.
  package struct Facts: Sendable {
    /// The bundle id: `apns-topic` without the suffix of the push type.
    let application: Name
    /// `notify`, `remove` or `cancel`. A removal of pending notifications is a cancel.
    let operation: RequestView.Operation
    /// Whether its target is a device, and not a person.
    let isForDevice: Bool
    /// A warning for each unknown field.
    package let warnings: [String]
  }

  /// Checks it by every rule of the cluster.
  ///
  /// A wall time without a zone is that of devices which only the cluster knows. It counts as due if it is due in any zone.
  ///
  /// - Parameter times: keeps what it has found of zones for the next request.
  package func check(_ limits: RequestLimits, _ times: inout DueTimes) throws(Rejection) -> Facts {
    // One buffer for all, since a view borrows its parts.
    var bytes = key
    for (name, value) in headers {
      bytes += name.utf8
      bytes += value.utf8
    }
    let payload = value ?? []
    let now = WallClock.milliseconds()
    var due: TimedTrigger?
    let result = bytes.withUnsafeBytes { bytes in
      payload.withUnsafeBytes { payload -> Result<Facts, Rejection> in
        var position = 0
        func next(_ count: Int) -> UnsafeRawBufferPointer {
          defer { position += count }
          return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
        }
        let key = next(key.count)
        var fields = RequestHeaders()
        var unknown: [UnknownField] = []
        for (name, value) in headers {
          let name = next(name.utf8.count)
          fields.take(name: name, value: next(value.utf8.count))
          if let field = UnknownField(header: name) { unknown.append(field) }
        }
        let record = RequestRecord(
          key: key, value: payload, headers: fields, topic: .empty,
          position: SourcePosition(partition: 0, offset: 0, timestamp: now))
        switch RequestView.read(record, limits: limits) {
        case .accepted(let view):
          if let member = view.facts.unknown { unknown.append(member) }
          if case .time(let trigger) = view.timing, case .timed(let timed)? = try? Trigger(trigger) { due = timed }
          return .success(
            Facts(
              application: Name(view.application), operation: view.removesPending ? .cancel : view.operation,
              isForDevice: view.target.device != nil, warnings: unknown.map(\.warning)))
        case .rejected(let rejection, _): return .failure(rejection)
        }
      }
    }
    let facts = try result.get()
    if let due { try times.check(due, requested: now, deviceZone: Self.lastZone) }
    return facts
  }

  /// No other zone reaches a wall time later.
  private static let lastZone: Name = "Etc/GMT+12"
}

extension UnknownField {
  fileprivate var warning: String {
    let meant = Suggestion.nearest(to: path, in: UnknownField.known(at: place))
    return "\(PrintedText.echo(path)) is unknown, and has no effect" + Suggestion.question(meant)
  }
}
