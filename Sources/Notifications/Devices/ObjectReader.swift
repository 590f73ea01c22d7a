internal import JSON

/// Reads the members of a JSON object by their rules. A `null` member counts as absent.
struct ObjectReader {
  let object: JSONValue
  /// The object's path and a full stop; empty for the whole text.
  let path: String

  /// Reads a complete text as an object.
  init(parsing text: UnsafeRawBufferPointer, atMost bytes: Int = .max) throws(FieldError) {
    guard text.count <= bytes else { throw FieldError(field: "", rule: "A value takes at most \(bytes) bytes.") }
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

  func required<Value>(_ key: String, _ value: Value?) throws(FieldError) -> Value {
    guard let value else { throw error(key, "This member is required.") }
    return value
  }

  func requiredText(_ key: String, longest: Int) throws(FieldError) -> String {
    try required(key, try text(key, longest: longest))
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
    try required(key, try integer(key))
  }

  func flag(_ key: String, _ rule: String = "This is true or false.") throws(FieldError) -> Bool? {
    guard let value = self[key] else { return nil }
    guard let flag = value.boolValue else { throw error(key, rule) }
    return flag
  }

  /// Reads a word that is the raw value of a case.
  func choice<Word: RawRepresentable<String>>(_ key: String, _ rule: String) throws(FieldError) -> Word? {
    guard let value = self[key] else { return nil }
    guard let word = value.stringValue.flatMap(Word.init(rawValue:)) else { throw error(key, rule) }
    return word
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
    text.withBytes { !$0.isEmpty && $0.count <= longest && $0.isPlainText }
  }
}
