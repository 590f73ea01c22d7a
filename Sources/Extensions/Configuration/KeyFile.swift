import Cryptography
import JSON

/// A file with keys by their ids: `{"keys": [{"id": "2026-11", "key": "…"}, …]}`, each key in base64url without padding. It is read
/// strictly: a member that is unknown or stands there twice is refused, since whoever wrote it means something by it.
enum KeyFile {
  /// The longest key file, in bytes.
  static let maximumBytes = 1 << 20

  /// The JSON object of a file.
  ///
  /// - Parameter names: the members that it may have.
  static func object(parsing text: UnsafeRawBufferPointer, members names: [String]) throws(KeyFileError) -> JSONValue {
    guard text.count <= maximumBytes else { throw KeyFileError(place: "", rule: "The file has at most \(maximumBytes) bytes.") }
    let file: JSONValue
    do throws(JSONError) {
      file = try JSONValue(parsing: text)
    } catch {
      throw KeyFileError(place: "", rule: "The file is one JSON object by RFC 8259 (byte \(error.offset)).")
    }
    try check(file, place: "", members: names)
    return file
  }

  /// The members' names are not told: a key may have come to stand there by mistake.
  static func check(_ value: JSONValue, place: String, members names: [String]) throws(KeyFileError) {
    guard let members = value.members else { throw KeyFileError(place: place, rule: "This is a JSON object.") }
    guard members.allSatisfy({ names.contains($0.key) }), Set(members.map(\.key)).count == members.count else {
      throw KeyFileError(place: place, rule: "The members are \(names.joined(separator: " and ")), once each, and no others.")
    }
  }

  /// The keys of the member `keys`, in the order of the file.
  ///
  /// - Parameters:
  ///   - count: how many there may be.
  ///   - lengths: of a key, in bytes.
  ///   - longestID: in bytes.
  static func keys(
    _ list: JSONValue, count: ClosedRange<Int>, lengths: ClosedRange<Int>, longestID: Int
  ) throws(KeyFileError) -> [(id: String, bytes: [UInt8])] {
    guard let elements = list.elements, count.contains(elements.count) else {
      throw KeyFileError(place: "keys", rule: "This is an array of \(max(1, count.lowerBound)) to \(count.upperBound) keys.")
    }
    var keys: [(id: String, bytes: [UInt8])] = []
    var ids: Set<[UInt8]> = []
    for (index, element) in elements.enumerated() {
      let place = "keys[\(index)]"
      try check(element, place: place, members: ["id", "key"])
      let id = try id(element["id"], place: place + ".id", longest: longestID)
      // Bytes are compared, not characters: those in the content are bytes.
      guard ids.insert(Array(id.utf8)).inserted else {
        throw KeyFileError(place: place + ".id", rule: "The ids of a file's keys differ.")
      }
      keys.append((id, try key(element["key"], place: place + ".key", lengths)))
    }
    return keys
  }

  private static func id(_ value: JSONValue?, place: String, longest: Int) throws(KeyFileError) -> String {
    guard let value else { throw KeyFileError(place: place, rule: "This member is required.") }
    guard let id = value.stringValue, (1...longest).contains(id.utf8.count) else {
      throw KeyFileError(place: place, rule: "This is text of 1 to \(longest) bytes.")
    }
    return id
  }

  private static func key(_ value: JSONValue?, place: String, _ lengths: ClosedRange<Int>) throws(KeyFileError) -> [UInt8] {
    guard let value else { throw KeyFileError(place: place, rule: "This member is required.") }
    guard let bytes = value.stringValue.flatMap({ Base64.decode(url: $0) }) else {
      throw KeyFileError(place: place, rule: "This is text in base64url without padding.")
    }
    guard lengths.contains(bytes.count) else {
      throw KeyFileError(
        place: place, rule: "A key has \(lengths.lowerBound) to \(lengths.upperBound) bytes; this one has \(bytes.count).")
    }
    return bytes
  }
}

/// A rule that a key file does not keep, and where. It never shows a key.
public struct KeyFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The member, as a path: `keys[3].key`; empty for the whole file.
  public let place: String
  /// The rule as a sentence that says what to do.
  public let rule: String

  /// An error of one member.
  public init(place: String, rule: String) {
    (self.place, self.rule) = (place, rule)
  }

  /// Always false: the same bytes give the same answer.
  public var isRetriable: Bool { false }

  /// Place and rule.
  public var description: String { place.isEmpty ? rule : "\(place): \(rule)" }
}
