public import EventLoop
public import Notifications

/// How a setting's value is written, read and described.
///
/// A kind never says why a text is wrong. It says what is allowed, since that is what the person needs.
public struct SettingKind<Value: Sendable>: Sendable {
  /// The placeholder of the value in a usage line, in capitals; nil for a switch, which has no value.
  let placeholder: String?
  /// The allowed values, as the end of "must be …": `a whole number from 1 to 64`.
  let allowed: String
  /// Whether each further occurrence adds to the value instead of replacing it.
  let isRepeated: Bool
  /// The completion that a shell offers for the value, or for a part of it between commas.
  var completion = Completion.nothing
  /// Reads the texts of one source, which is one text unless the kind is repeated; nil if any is not allowed.
  let read: @Sendable ([String]) -> Value?
  /// Writes a value in the form that `read` reads.
  let write: @Sendable (Value) -> String
}

extension SettingKind {
  /// Makes a kind that is read from one text.
  ///
  /// - Parameters:
  ///   - placeholder: the placeholder in a usage line, such as `TIME`.
  ///   - allowed: the allowed values, as the end of "must be …": `a time such as 2026-01-31T12:00:00Z`.
  ///   - completion: the completion that a shell offers.
  ///   - read: reads a value; nil if the text is not allowed.
  ///   - write: writes a value in the form that `read` reads; by default its description.
  public init(
    placeholder: String, allowed: String, completion: Completion = .nothing, read: @escaping @Sendable (String) -> Value?,
    write: @escaping @Sendable (Value) -> String = { "\($0)" }
  ) {
    self.init(
      placeholder: placeholder, allowed: allowed, isRepeated: false, completion: completion, read: { texts in texts.last.flatMap(read) },
      write: write)
  }

  /// Whether a text is allowed, for values that are not settings.
  public func accepts(_ text: String) -> Bool { read([text]) != nil }
}

extension SettingKind where Value == String {
  /// The allowed values if nearly all are.
  static let anyText = "a text that is not empty"

  /// Any text that is not empty.
  public static func string(_ placeholder: String, completion: Completion = .nothing) -> SettingKind {
    SettingKind(placeholder: placeholder, allowed: anyText, completion: completion, read: { $0.isEmpty ? nil : $0 })
  }

  /// The path of a file.
  public static var file: SettingKind { string("FILE", completion: .file) }

  /// The path of a file, or `-` for standard input.
  public static var fileOrInput: SettingKind { string("FILE|-", completion: .file) }

  /// The path of a folder.
  public static var folder: SettingKind { string("FOLDER", completion: .folder) }
}

extension SettingKind where Value == Name {
  /// A name that is not empty: a user, an application, a collapse id and so on.
  public static func name(_ placeholder: String) -> SettingKind {
    SettingKind(
      placeholder: placeholder, allowed: SettingKind<String>.anyText, read: { $0.isEmpty ? nil : Name($0) })
  }
}

extension SettingKind where Value == Int {
  /// A whole number within a range.
  public static func integer(_ range: ClosedRange<Int>) -> SettingKind {
    SettingKind(
      placeholder: "N", allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)",
      read: { text in Int(text).flatMap { range.contains($0) ? $0 : nil } })
  }

  /// A number of bytes within a range, written with a unit: `64KiB`.
  public static func size(_ range: ClosedRange<Int>) -> SettingKind {
    SettingKind(
      placeholder: "SIZE",
      allowed: "a size from \(ByteSize.text(range.lowerBound)) to \(ByteSize.text(range.upperBound)), such as 64KiB or 1MiB",
      read: { text in ByteSize.read(text).flatMap { range.contains($0) ? $0 : nil } }, write: ByteSize.text)
  }
}

extension SettingKind where Value == Duration {
  /// A duration within a range, written with a unit: `500ms`.
  public static func duration(_ range: ClosedRange<Duration>) -> SettingKind {
    SettingKind(
      placeholder: "DURATION",
      allowed:
        "a duration from \(DurationText.text(range.lowerBound)) to \(DurationText.text(range.upperBound)), such as 500ms, 30s, 5m, 2h or 2d",
      read: { text in Duration(written: text).flatMap { range.contains($0) ? $0 : nil } }, write: DurationText.text)
  }
}

extension SettingKind where Value == Bool {
  /// Yes or no. The flag alone means yes; `--no-…` means no.
  public static var boolean: SettingKind {
    SettingKind(
      placeholder: nil, allowed: "true or false", isRepeated: false,
      read: { texts in
        switch texts.last?.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
      },
      write: { $0 ? "true" : "false" })
  }
}

extension SettingKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  /// One of an enumeration's cases, by its raw value.
  public static var choice: SettingKind {
    let words = Value.allCases.map(\.rawValue)
    return SettingKind(
      placeholder: words.joined(separator: "|"), allowed: "one of \(words.joined(separator: ", "))", completion: .words(words),
      read: { Value(rawValue: $0) }, write: { $0.rawValue })
  }
}

extension SettingKind where Value == SocketAddress {
  /// A host and a port.
  public static var address: SettingKind {
    SettingKind(
      placeholder: "HOST:PORT", allowed: "HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080",
      read: { text in
        // A listener takes numbers. This name always means the same one (RFC 6761, section 6.3).
        guard let address = SocketAddress(text), address.host.lowercased() == "localhost" else { return SocketAddress(text) }
        return SocketAddress(host: "127.0.0.1", port: address.port)
      })
  }
}

extension SettingKind where Value == [SocketAddress] {
  /// One or more hosts and ports, separated by commas.
  public static var addresses: SettingKind {
    SettingKind(
      placeholder: "HOST:PORT,…", allowed: "HOST:PORT, or several separated by commas",
      read: { text in
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let addresses = parts.compactMap { SocketAddress(String($0.trimmingSpaces)) }
        return addresses.count == parts.count ? addresses : nil
      },
      write: { $0.map(\.description).joined(separator: ",") })
  }
}

extension SettingKind {
  /// Any number of values. The flag or the line of the file is repeated, or one text contains commas.
  ///
  /// - Parameters:
  ///   - element: the kind of each value.
  ///   - splitsAtCommas: whether one text may contain several values. In the environment that is the only way.
  public static func repeated<Element>(_ element: SettingKind<Element>, splitsAtCommas: Bool = true) -> SettingKind
  where Value == [Element] {
    SettingKind(
      placeholder: element.placeholder, allowed: "\(element.allowed); several may be given", isRepeated: true,
      completion: element.completion,
      read: { texts in
        let parts = splitsAtCommas ? texts.flatMap { $0.split(separator: ",").map { String($0.trimmingSpaces) } } : texts
        let values = parts.compactMap { element.read([$0]) }
        return values.count == parts.count ? values : nil
      },
      write: { $0.map(element.write).joined(separator: ",") })
  }
}
