internal import JSON

/// Reads the members of a JSON object by their rules. A `null` member counts as absent.
struct ObjectReader {
  let object: JSONValue
  /// The object's path and a full stop; empty for the whole text.
  let path: String

  /// Reads a complete text as an object.
  init(parsing text: UnsafeRawBufferPointer) throws(FieldError) {
    do throws(JSONError) {
      object = try JSONValue(parsing: text)
    } catch {
      throw FieldError(field: "", rule: "The text is one JSON object by RFC 8259 (byte \(error.offset)).")
    }
    guard object.members != nil else { throw FieldError(field: "", rule: "The text is a JSON object.") }
    path = ""
  }

  init(_ value: JSONValue, path: String) throws(FieldError) {
    guard value.members != nil else { throw FieldError(field: path, rule: "This is an object.") }
    (object, self.path) = (value, path + ".")
  }

  subscript(key: String) -> JSONValue? {
    guard let value = object[key], value != .null else { return nil }
    return value
  }

  func error(_ key: String, _ rule: String) -> FieldError { FieldError(field: path + key, rule: rule) }

  /// Reads a text of 1 to `longest` bytes without control characters.
  ///
  /// With `isFree` it reads any text up to that length.
  func text(_ key: String, longest: Int, isFree: Bool = false) throws(FieldError) -> String? {
    guard let value = self[key] else { return nil }
    guard let text = value.stringValue, isFree ? text.utf8.count <= longest : Self.isPlain(text, longest: longest) else {
      throw error(
        key, isFree ? "This is text of at most \(longest) bytes." : "This is text of 1 to \(longest) bytes without control characters.")
    }
    return text
  }

  func requiredText(_ key: String, longest: Int) throws(FieldError) -> String {
    guard let text = try text(key, longest: longest) else { throw error(key, "This member is required.") }
    return text
  }

  func integer(_ key: String, in range: ClosedRange<Int64> = 0...Int64.max) throws(FieldError) -> Int64? {
    guard let value = self[key] else { return nil }
    guard let number = value.integerValue, range.contains(number) else {
      let end = range.upperBound == .max ? "on" : "to \(range.upperBound)"
      throw error(key, "This is an integer from \(range.lowerBound) \(end).")
    }
    return number
  }

  func requiredInteger(_ key: String) throws(FieldError) -> Int64 {
    guard let number = try integer(key) else { throw error(key, "This member is required.") }
    return number
  }

  /// Returns an array's elements with their paths.
  func elements(_ key: String, atMost maximum: Int) throws(FieldError) -> [(value: JSONValue, path: String)]? {
    guard let value = self[key] else { return nil }
    guard let elements = value.elements, elements.count <= maximum else {
      throw error(key, "This is an array of at most \(maximum) elements.")
    }
    return elements.enumerated().map { ($0.element, "\(path)\(key)[\($0.offset)]") }
  }

  /// Returns the known words of an array. Other words are ignored.
  func words(_ key: String, atMost maximum: Int = 32) throws(FieldError) -> [String] {
    var words: [String] = []
    for (value, path) in try elements(key, atMost: maximum) ?? [] {
      guard let word = value.stringValue else { throw FieldError(field: path, rule: "This is a word, as a string.") }
      words.append(word)
    }
    return words
  }

  static func isPlain(_ text: String, longest: Int) -> Bool {
    var text = text
    return text.withUTF8 { !$0.isEmpty && $0.count <= longest && UnsafeRawBufferPointer($0).isPlainText }
  }
}
