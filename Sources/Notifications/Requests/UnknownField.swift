internal import Glibc
internal import JSON

/// An unknown header or member of the payload, borrowed from the record.
///
/// It has no effect. Often its name is misspelt, and then the request does not do what its sender wanted.
public struct UnknownField {
  /// The place of a field.
  public enum Place: Sendable {
    /// In the headers, with a name that begins with `apns-`.
    case header
    /// In `aps`.
    case aps
    /// In `aps.alert`.
    case alert
    /// In `aps.sound`.
    case sound
  }

  /// The place of the field.
  public let place: Place
  /// The name; for a member of the payload the characters between the quotes.
  private let name: UnsafeRawBufferPointer

  /// The longest name that is shown in full, in bytes.
  private static var longestName: Int { 64 }

  /// Creates the field of a header; nil unless it is an unknown `apns-` header.
  public init?(header name: UnsafeRawBufferPointer) {
    guard name.startsIgnoringCase(with: "apns-"), RequestHeader.named(name) == nil else { return nil }
    (place, self.name) = (.header, name)
  }

  /// Creates the field of a header with a zero-terminated name.
  public init?(header name: UnsafePointer<CChar>) {
    self.init(header: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  init(member key: JSONSpan, of place: Place, _ scanner: JSONScanner) {
    let source = scanner.source(key)
    (self.place, name) = (place, UnsafeRawBufferPointer(rebasing: source[1..<max(1, source.count - 1)]))
  }

  /// The path of the field, such as `apns-topci` or `aps.alertt`. A long name is cut.
  ///
  /// The text comes from the record: escape it before printing.
  public var path: String {
    let text = name.count > Self.longestName ? UnsafeRawBufferPointer(rebasing: name[..<Self.longestName]).text + "…" : name.text
    return prefix + text
  }

  private var prefix: String {
    switch place {
    case .header: ""
    case .aps: "aps."
    case .alert: "aps.alert."
    case .sound: "aps.sound."
    }
  }

  /// The sentence that names the field in a rejection.
  ///
  /// It is logged, so a name appears only if it has a topic's characters.
  var sentence: String {
    let kind = place == .header ? "header" : "member"
    guard (1...Self.longestName).contains(name.count), name.allSatisfy(ApplicationTopic.isNameByte) else {
      return place == .header ? "A header whose name begins with apns- is unknown." : "A \(kind) of \(prefix.dropLast()) is unknown."
    }
    return "The \(kind) \(path) is unknown."
  }

  /// Returns the paths of the known fields in a place.
  public static func known(at place: Place) -> [String] {
    switch place {
    case .header: RequestHeader.allCases.map(\.name.description).filter { $0.hasPrefix("apns-") }
    case .aps: APSKey.allCases.map(\.field.description)
    case .alert: AlertMember.all.map(\.field.description)
    case .sound: SoundMember.allCases.map(\.field.description)
    }
  }
}
