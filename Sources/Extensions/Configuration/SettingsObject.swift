import JSON
import Notifications

/// An object of the extensions' file, whose members are read one by one. An unread member is a mistake.
struct SettingsObject {
  /// Its place: `applications["com.example.shop"][0]`.
  let path: String
  /// The folder of the file, from which relative paths begin.
  private let folder: String
  private var members: [JSONValue.Member]
  private var known: [String] = []

  init(_ value: JSONValue, at path: String, in folder: String) throws(FieldError) {
    guard case .object(let members) = value else { throw FieldError(field: path, rule: "This must be an object.") }
    self.path = path
    // A name without a slash would be searched for in PATH if it is a program's.
    self.folder = folder.isEmpty ? "." : folder
    self.members = members
    var names: Set<Name> = []
    for member in members where !names.insert(Name(member.key)).inserted {
      throw FieldError(field: place(member.key), rule: "A member stands once.")
    }
  }

  /// An object inside it.
  func object(_ value: JSONValue, at name: String) throws(FieldError) -> SettingsObject {
    try SettingsObject(value, at: place(name), in: folder)
  }

  /// The place of a member.
  func place(_ name: String) -> String { (path.isEmpty ? "" : path + ".") + PrintedText.echo(name) }

  func wrong(_ name: String, _ rule: String) -> FieldError { FieldError(field: place(name), rule: rule) }

  /// A path of the file for the process; it always has a slash.
  func path(_ written: String) -> String {
    if written.hasPrefix("/") { return written }
    return folder.hasSuffix("/") ? folder + written : "\(folder)/\(written)"
  }

  /// Takes a member; nil if it is missing.
  mutating func take(_ name: String) -> JSONValue? {
    known.append(name)
    guard let place = members.firstIndex(where: { Name($0.key) == Name(name) }) else { return nil }
    return members.remove(at: place).value
  }

  /// Reads a member; nil if it is missing.
  ///
  /// - Parameter read: its value; nil if it breaks the rule.
  private mutating func read<Value>(_ name: String, _ rule: @autoclosure () -> String, _ read: (JSONValue) -> Value?) throws(FieldError)
    -> Value?
  {
    guard let value = take(name) else { return nil }
    guard let found = read(value) else { throw wrong(name, rule()) }
    return found
  }

  /// A text of at least one byte and at most this many.
  mutating func text(_ name: String, longest: Int) throws(FieldError) -> String? {
    try read(name, "This must be a text of 1 to \(longest) bytes.") { value in
      value.stringValue.flatMap { (1...longest).contains($0.utf8.count) ? $0 : nil }
    }
  }

  /// A required text.
  mutating func requiredText(_ name: String, longest: Int) throws(FieldError) -> String {
    guard let text = try text(name, longest: longest) else { throw wrong(name, "This member is required.") }
    return text
  }

  /// One of some words.
  mutating func word<Word: RawRepresentable & CaseIterable>(_ name: String, default standard: Word) throws(FieldError) -> Word
  where Word.RawValue == String {
    let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
    return try read(name, "This must be one of: \(words).") { $0.stringValue.flatMap(Word.init(rawValue:)) } ?? standard
  }

  /// A whole number in a range.
  mutating func integer(_ name: String, in range: ClosedRange<Int64>) throws(FieldError) -> Int64? {
    try read(name, "This must be a whole number from \(range.lowerBound) to \(range.upperBound).") { value in
      value.integerValue.flatMap { range.contains($0) ? $0 : nil }
    }
  }

  /// A boolean; false if it is missing.
  mutating func flag(_ name: String) throws(FieldError) -> Bool { try read(name, "This must be true or false.", \.boolValue) ?? false }

  /// At most 64 texts of at most 1,024 bytes each; none if the member is missing.
  mutating func texts(_ name: String) throws(FieldError) -> [String] {
    try read(name, "This must be a list of 1 to 64 texts of 1 to 1024 bytes.") { value in
      let texts = value.elements?.compactMap(\.stringValue).filter { (1...1_024).contains($0.utf8.count) } ?? []
      return (1...64).contains(texts.count) && texts.count == value.elements?.count ? texts : nil
    } ?? []
  }

  /// The content of a named file, with its path for the process.
  mutating func file(_ name: String, limit: Int) throws(FieldError) -> (path: String, bytes: [UInt8]) {
    guard let file = try optionalFile(name, limit: limit) else { throw wrong(name, "This member is required.") }
    return file
  }

  /// The same; nil if the member is missing.
  mutating func optionalFile(_ name: String, limit: Int) throws(FieldError) -> (path: String, bytes: [UInt8])? {
    guard let written = try text(name, longest: 4_096) else { return nil }
    let path = path(written)
    do throws(FieldError) {
      guard let bytes = try BoundedFile.read(path, limit: limit) else { throw FieldError(field: path, rule: "there is no such file") }
      return (path, bytes)
    } catch { throw wrong(name, "\(error)") }
  }

  /// The members of an object by its names, in the order of the file; none if it is missing.
  mutating func entries(_ name: String) throws(FieldError) -> [JSONValue.Member] {
    try read(name, "This must be an object.", \.members) ?? []
  }

  /// Checks that every member was read.
  func finish() throws(FieldError) {
    guard let left = members.first else { return }
    throw wrong(left.key, "There is no such setting here; there are: \(known.joined(separator: ", ")).")
  }
}
