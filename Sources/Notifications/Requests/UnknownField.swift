internal import Glibc
internal import JSON

/// A header or a member of the payload that no rule knows, borrowed from the record.
///
/// It has no effect. Often its name is a misspelt one, and then what the sender wanted does not happen.
public struct UnknownField {
  /// Where a field stands.
  public enum Place: Sendable {
    /// Among the headers; its name begins with `apns-`.
    case header
    /// In `aps`.
    case aps
    /// In `aps.alert`.
    case alert
    /// In `aps.sound`.
    case sound
  }

  /// Where it stands.
  public let place: Place
  /// Its name; of a member of the payload the characters between the quotes.
  private let name: UnsafeRawBufferPointer

  /// The longest name that is given in full, in bytes.
  private static var longestName: Int { 64 }

  /// The field of a header's name; nil where the header is known, or is none of Apple's.
  public init?(header name: UnsafeRawBufferPointer) {
    guard name.startsIgnoringCase(with: "apns-"), RequestHeader.named(name) == nil else { return nil }
    (place, self.name) = (.header, name)
  }

  /// The field of a header's name that ends with a zero.
  public init?(header name: UnsafePointer<CChar>) {
    self.init(header: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  init(member key: JSONSpan, of place: Place, _ scanner: JSONScanner) {
    let source = scanner.source(key)
    (self.place, name) = (place, UnsafeRawBufferPointer(rebasing: source[1..<max(1, source.count - 1)]))
  }

  /// The path to it, such as `apns-topci` or `aps.alertt`, of a long name the beginning. It is text of the record: escape it to print it.
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

  /// The sentence that names it in a rejection. Names of other characters than a topic's are left out, since it is logged.
  var sentence: String {
    let kind = place == .header ? "header" : "member"
    guard (1...Self.longestName).contains(name.count), name.allSatisfy(ApplicationTopic.isNameByte) else {
      return place == .header ? "A header whose name begins with apns- is unknown." : "A \(kind) of \(prefix.dropLast()) is unknown."
    }
    return "The \(kind) \(path) is unknown."
  }

  /// The paths of the fields that are known at a place.
  public static func known(at place: Place) -> [String] {
    switch place {
    case .header: RequestHeader.allCases.map(\.name.description).filter { $0.hasPrefix("apns-") }
    case .aps: APSKey.allCases.map(\.field.description)
    case .alert: AlertMember.all.map(\.field.description)
    case .sound: SoundMember.allCases.map(\.field.description)
    }
  }
}
