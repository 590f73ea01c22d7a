import Kafka

/// The header `carillon-replay` of a record that a replay wrote.
///
/// Its value is `RUN/OFFSET`: the replay's name, and the offset of the source record in the same partition.
enum ReplayHeader {
  static let name: StaticString = "carillon-replay"

  /// The source's offset, if the record is of this replay.
  static func offset(_ record: RecordView, of run: String) -> Int64? {
    guard let value = record.header(name.description) else { return nil }
    let prefix = run.utf8.count + 1
    guard value.count > prefix, value.prefix(prefix).elementsEqual("\(run)/".utf8) else { return nil }
    return Int64(String(decoding: value.dropFirst(prefix), as: UTF8.self))
  }

  /// Whether any replay has written the record.
  static func isThere(_ record: RecordView) -> Bool { record.header(name.description) != nil }
}
