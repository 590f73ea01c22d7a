import CRdKafka

/// The headers of a record to produce, which `Producer.produce` empties.
///
/// One per lane is enough. If `produce` refuses the record, the headers stay, so the call can be repeated.
public final class RecordHeaders {
  private(set) var pointer: OpaquePointer?
  /// The number of headers.
  public var count: Int { pointer.map { rd_kafka_header_cnt($0) } ?? 0 }

  /// Makes an empty list.
  public init() {}

  /// Appends a header.
  ///
  /// - Parameters:
  ///   - name: zero-terminated; copied.
  ///   - value: copied; nil makes a header without a value.
  public func append(_ name: UnsafePointer<CChar>, _ value: UnsafeRawBufferPointer?) {
    append(name, count: -1, value)
  }

  private func append(_ name: UnsafePointer<CChar>, count nameCount: Int, _ value: UnsafeRawBufferPointer?) {
    guard let list = pointer ?? rd_kafka_headers_new(8) else { preconditionFailure("librdkafka has memory for headers") }
    pointer = list
    // An empty buffer may have no address, which librdkafka would take for null.
    var empty: UInt8 = 0
    withUnsafePointer(to: &empty) { empty in
      let start: UnsafeRawPointer? = value.map { $0.baseAddress ?? UnsafeRawPointer(empty) }
      _ = rd_kafka_header_add(list, name, nameCount, start, value?.count ?? 0)
    }
  }

  /// Adds a header whose name is written in the source.
  public func append(_ name: StaticString, _ value: UnsafeRawBufferPointer?) {
    name.utf8Start.withMemoryRebound(to: CChar.self, capacity: name.utf8CodeUnitCount + 1) {
      append($0, count: name.utf8CodeUnitCount, value)
    }
  }

  /// Adds a header of text, whose name is written in the source.
  public func append(_ name: StaticString, text value: String) {
    var value = value
    value.withUTF8 { append(name, UnsafeRawBufferPointer($0)) }
  }

  /// Adds a header of text.
  public func append(_ name: String, _ value: String) {
    var value = value
    name.withCString { name in value.withUTF8 { append(name, UnsafeRawBufferPointer($0)) } }
  }

  /// Replaces all headers by those of a consumed record.
  public func copy(from record: RecordView) { copy(from: record.message) }

  /// Replaces all headers by those of a librdkafka message.
  func copy(from message: UnsafePointer<rd_kafka_message_t>) {
    removeAll()
    var headers: OpaquePointer?
    guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return }
    pointer = rd_kafka_headers_copy(headers)
  }

  /// Removes all headers of this name.
  public func remove(_ name: String) {
    guard let pointer else { return }
    rd_kafka_header_remove(pointer, name)
  }

  /// Empties the list.
  public func removeAll() {
    if let pointer { rd_kafka_headers_destroy(pointer) }
    release()
  }

  /// Notes that librdkafka has taken ownership of the list.
  func release() { pointer = nil }

  deinit { if let pointer { rd_kafka_headers_destroy(pointer) } }
}
