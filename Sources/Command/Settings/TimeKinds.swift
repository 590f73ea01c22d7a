import Notifications
import Operations
import Worker

/// A moment from a person: a time, or a duration from now.
enum Moment: Sendable, Hashable {
  /// Milliseconds since 1970.
  case at(Int64)
  /// This far ahead or ago, as the setting defines.
  case away(Duration)
}

extension SettingKind where Value == Moment {
  /// Seconds since 1970, or a duration from now.
  static var expiration: SettingKind {
    SettingKind(
      placeholder: "TIME", allowed: "seconds since 1970 (0: one attempt, never stored), or how long from now, such as 30s, 10m, 2h or 1d",
      read: { text in seconds(text).map { .at($0 * 1000) } ?? Duration(written: text).map { .away($0) } }, write: \.text)
  }

  /// A time, or a duration before now.
  static var past: SettingKind {
    SettingKind(
      placeholder: "TIME", allowed: "a time such as 2026-01-31T12:00:00Z, or how long ago, such as 30s, 10m, 2h or 1d",
      read: { Moment(past: $0) }, write: \.text)
  }

  private static func seconds(_ text: String) -> Int64? {
    guard text.utf8.count <= 15, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return Int64(text)
  }
}

extension Moment {
  /// Reads a time by RFC 3339, or a duration before now; nil for anything else.
  init?(past text: String) {
    guard let moment = Timestamp.parse(text).map({ Moment.at($0) }) ?? Duration(written: text).map({ .away($0) }) else { return nil }
    self = moment
  }

  /// Milliseconds since 1970 at this present time. A duration lies before it.
  func before(now: Int64) -> Int64 {
    switch self {
    case .at(let milliseconds): milliseconds
    case .away(let duration): now - Timestamp.bounded(Int64(duration.wholeMilliseconds))
    }
  }

  /// Seconds since 1970, from the present time in milliseconds. A duration lies after it.
  func secondsAfter(now: Int64) -> Int64 {
    switch self {
    case .at(let milliseconds): milliseconds / 1000
    case .away(let duration): (now + Timestamp.bounded(Int64(duration.wholeMilliseconds))) / 1000
    }
  }

  /// Its text, in a form that can be read again.
  var text: String {
    switch self {
    case .at(let milliseconds): Timestamp.text(milliseconds)
    case .away(let duration): "\(duration.wholeMilliseconds)ms"
    }
  }
}

extension TimeRange {
  /// Reads the range between the settings `--from` and `--to`. A duration lies before now.
  init(_ values: SettingValues, from: Setting<Moment?>, to: Setting<Moment?>, now: Int64) throws(UsageError) {
    self.init(from: values[from]?.before(now: now), to: values[to]?.before(now: now))
    if let from = self.from, let to = self.to, from >= to { throw UsageError(.contradiction, "--from must lie before --to") }
  }
}
