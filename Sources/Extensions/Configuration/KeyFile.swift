import Cryptography
import JSON
import Notifications

/// A file with keys by their ids: `{"keys": [{"id": "2026-11", "key": "…"}, …]}`, each key in base64url without padding. An unknown or
/// repeated member is refused, since its author meant something by it.
enum KeyFile {
  /// The longest key file, in bytes.
  static let maximumBytes = 1 << 20

  /// The JSON object of a file.
  ///
  /// - Parameter names: the allowed members.
  static func object(parsing text: UnsafeRawBufferPointer, members names: [String]) throws(FieldError) -> JSONValue {
    guard text.count <= maximumBytes else { throw FieldError(field: "", rule: "The file has at most \(maximumBytes) bytes.") }
    let file: JSONValue
    do throws(JSONError) {
      file = try JSONValue(parsing: text)
    } catch {
      throw FieldError(field: "", rule: "The file is one JSON object by RFC 8259 (byte \(error.offset)).")
    }
    try check(file, place: "", members: names)
    return file
  }

  /// The message does not contain the members' names, since one of them may be a key by mistake.
  static func check(_ value: JSONValue, place: String, members names: [String]) throws(FieldError) {
    guard let members = value.members else { throw FieldError(field: place, rule: "This must be a JSON object.") }
    guard members.allSatisfy({ names.contains($0.key) }), Set(members.map { Name($0.key) }).count == members.count else {
      throw FieldError(field: place, rule: "The members are \(names.joined(separator: " and ")), once each, and no others.")
    }
  }

  /// The keys of the member `keys`, in the order of the file.
  ///
  /// - Parameters:
  ///   - count: the allowed number of keys.
  ///   - lengths: the allowed bytes of a key.
  ///   - longestID: the most bytes of an id.
  static func keys(
    _ list: JSONValue, count: ClosedRange<Int>, lengths: ClosedRange<Int>, longestID: Int
  ) throws(FieldError) -> [(id: String, bytes: [UInt8])] {
    guard let elements = list.elements, count.contains(elements.count) else {
      throw FieldError(field: "keys", rule: "This must be an array of \(max(1, count.lowerBound)) to \(count.upperBound) keys.")
    }
    var keys: [(id: String, bytes: [UInt8])] = []
    var ids: Set<[UInt8]> = []
    for (index, element) in elements.enumerated() {
      let place = "keys[\(index)]"
      try check(element, place: place, members: ["id", "key"])
      let id = try id(element["id"], place: place + ".id", longest: longestID)
      // Bytes are compared, not characters: those in the content are bytes.
      guard ids.insert(Array(id.utf8)).inserted else {
        throw FieldError(field: place + ".id", rule: "The ids of a file's keys differ.")
      }
      keys.append((id, try key(element["key"], place: place + ".key", lengths)))
    }
    return keys
  }

  private static func id(_ value: JSONValue?, place: String, longest: Int) throws(FieldError) -> String {
    guard let value else { throw FieldError(field: place, rule: "This member is required.") }
    guard let id = value.stringValue, (1...longest).contains(id.utf8.count) else {
      throw FieldError(field: place, rule: "This must be text of 1 to \(longest) bytes.")
    }
    return id
  }

  private static func key(_ value: JSONValue?, place: String, _ lengths: ClosedRange<Int>) throws(FieldError) -> [UInt8] {
    guard let value else { throw FieldError(field: place, rule: "This member is required.") }
    guard let bytes = value.stringValue.flatMap({ Base64.decode(url: $0) }) else {
      throw FieldError(field: place, rule: "This must be text in base64url without padding.")
    }
    guard lengths.contains(bytes.count) else {
      throw FieldError(
        field: place, rule: "A key has \(lengths.lowerBound) to \(lengths.upperBound) bytes; this one has \(bytes.count).")
    }
    return bytes
  }
}
