internal import JSON
internal import Notifications

/// The text of the state file. Each line has a record after a hash of its text, which shows torn and damaged lines.
enum StateLines {
  private static let hashDigits = 16

  /// Appends a record as a line.
  static func append(_ record: StateRecord, to bytes: inout [UInt8]) {
    var json = JSONWriter()
    record.write(to: &json)
    json.withUnsafeBytes { text in
      bytes.append(contentsOf: digits(StableHash.hash(text)).utf8)
      bytes.append(UInt8(ascii: " "))
      bytes.append(contentsOf: text)
      bytes.append(UInt8(ascii: "\n"))
    }
  }

  /// The records of a file, the number of damaged lines, which are ignored, and the number of bytes before a torn last line.
  static func read(_ bytes: [UInt8]) -> (records: [StateRecord], damaged: Int, whole: Int) {
    var (records, damaged, whole): ([StateRecord], Int, Int) = ([], 0, 0)
    bytes.withUnsafeBytes { bytes in
      while let end = bytes[whole...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = UnsafeRawBufferPointer(rebasing: bytes[whole..<end])
        if let value = value(line) {
          // A record of a later version is complete, but unknown.
          if let record = StateRecord(value) { records.append(record) }
        } else {
          damaged += 1
        }
        whole = end + 1
      }
    }
    return (records, damaged, whole)
  }

  /// Whether bytes without the end of a line can be the rest of a torn first line.
  static func canBeTorn(_ bytes: [UInt8]) -> Bool {
    let isHash = bytes.prefix(hashDigits).allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    return isHash && " {".utf8.starts(with: bytes.dropFirst(hashDigits).prefix(2))
  }

  private static func value(_ line: UnsafeRawBufferPointer) -> JSONValue? {
    guard line.count > hashDigits + 1, line[hashDigits] == UInt8(ascii: " ") else { return nil }
    let text = UnsafeRawBufferPointer(rebasing: line[(hashDigits + 1)...])
    guard line.prefix(hashDigits).elementsEqual(digits(StableHash.hash(text)).utf8) else { return nil }
    return try? JSONValue(parsing: text)
  }

  private static func digits(_ hash: UInt64) -> String {
    let text = String(hash, radix: 16)
    return String(repeating: "0", count: hashDigits - text.count) + text
  }
}
