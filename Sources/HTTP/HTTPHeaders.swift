/// The header fields of a received message as ranges of its head. A lookup scans them, and makes a string only for a result.
///
/// Names compare without regard to case (RFC 9110, section 5.1).
public struct HTTPHeaders: Sendable {
  /// The position of one field in the head's bytes.
  struct Field {
    var nameStart: Int
    var nameEnd: Int
    var valueStart: Int
    var valueEnd: Int
  }

  private let bytes: [UInt8]
  private let fields: [Field]

  init(bytes: [UInt8], fields: [Field]) {
    self.bytes = bytes
    self.fields = fields
  }

  /// The names of all fields as sent, in order; a repeated one stands each time.
  public var names: [String] { fields.map { String(decoding: bytes[$0.nameStart..<$0.nameEnd], as: UTF8.self) } }

  /// The first value of a field, without white space around it; nil if the field is absent.
  public subscript(name: String) -> String? {
    fields.first { matches($0, name) }.map(value)
  }

  /// Every value of a field, in order.
  public func values(of name: String) -> [String] {
    fields.filter { matches($0, name) }.map(value)
  }

  /// The members of a list field (RFC 9110, section 5.6.1) from all its lines, without empty ones.
  func list(of name: String) -> [String] {
    values(of: name).flatMap { $0.split(separator: ",") }.map { String(Substring($0.utf8.trimmed)) }.filter { !$0.isEmpty }
  }

  /// Whether a list field has `token`, in any case.
  func hasToken(_ token: String, in name: String) -> Bool {
    list(of: name).contains { $0.lowercased() == token }
  }

  /// The number of lines of a field.
  func occurrences(of name: String) -> Int {
    fields.reduce(0) { $0 + (matches($1, name) ? 1 : 0) }
  }

  private func value(_ field: Field) -> String {
    String(decoding: bytes[field.valueStart..<field.valueEnd], as: UTF8.self)
  }

  private func matches(_ field: Field, _ name: String) -> Bool {
    let utf8 = name.utf8
    guard utf8.count == field.nameEnd - field.nameStart else { return false }
    var position = field.nameStart
    for byte in utf8 {
      if lowercase(bytes[position]) != lowercase(byte) { return false }
      position += 1
    }
    return true
  }
}

/// An ASCII letter in lower case; another byte unchanged.
@inline(__always)
private func lowercase(_ byte: UInt8) -> UInt8 { byte &- 65 < 26 ? byte | 0x20 : byte }

extension BidirectionalCollection<UInt8> {
  /// Without the spaces and tabs around it.
  var trimmed: SubSequence {
    var rest = self[...]
    while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest = rest.dropFirst() }
    while let byte = rest.last, byte == 0x20 || byte == 0x09 { rest = rest.dropLast() }
    return rest
  }
}
