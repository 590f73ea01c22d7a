import Kafka
package import Notifications

/// A copy of a record, which outlives the reading.
package struct StoredRecord: Sendable {
  /// A header: its name with the terminating zero, and its value, which may be missing.
  package struct Header: Sendable {
    /// The name's bytes and a zero.
    package var name: [CChar]
    /// The value.
    package var value: [UInt8]?

    /// A header of text.
    init(_ name: String, _ value: String) {
      self.name = Array(name.utf8CString)
      self.value = Array(value.utf8)
    }

    fileprivate init(_ name: UnsafePointer<CChar>, _ value: UnsafeRawBufferPointer?) {
      var count = 0
      while name[count] != 0 { count += 1 }
      self.name = Array(UnsafeBufferPointer(start: name, count: count + 1))
      self.value = value.map(Array.init)
    }

    /// The name for comparisons.
    package var key: Name { Name(String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)) }
  }

  /// The key; nil if there is none.
  package var key: [UInt8]?
  /// The value; nil if there is none.
  package var value: [UInt8]?
  /// The headers in their order.
  package var headers: [Header]

  /// About how many bytes it takes in a topic.
  var byteCount: Int {
    (key?.count ?? 0) + (value?.count ?? 0) + headers.reduce(0) { $0 + $1.name.count + ($1.value?.count ?? 0) + 4 } + 64
  }

  /// Removes the headers that only dead letters have.
  mutating func removeLetterHeaders() {
    headers.removeAll { header in
      header.name.count > LetterStateHeader.prefix.utf8.count
        && zip(header.name, LetterStateHeader.prefix.utf8).allSatisfy { UInt8(bitPattern: $0) == $1 }
    }
  }

  /// Lends it as a record of a topic at a place.
  ///
  /// - Parameter cluster: the cluster's name; nil if unknown.
  func withRequest<R>(topic: String, _ position: SourcePosition, cluster: String?, _ body: (RequestRecord) -> R) -> R {
    // One buffer for all, since a request's record borrows its parts.
    var bytes: [UInt8] = []
    var spans: [Range<Int>] = []
    func add(_ part: some Collection<UInt8>) {
      spans.append(bytes.count..<bytes.count + part.count)
      bytes += part
    }
    add(topic.utf8)
    add((cluster ?? "").utf8)
    add(key ?? [])
    for header in headers {
      add(header.name.dropLast().lazy.map { UInt8(bitPattern: $0) })
      add(header.value ?? [])
    }
    return bytes.withUnsafeBytes { bytes in
      func part(_ number: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[spans[number]]) }
      var fields = RequestHeaders()
      for (number, header) in headers.enumerated() where header.value != nil {
        fields.take(name: part(3 + 2 * number), value: part(4 + 2 * number))
      }
      return (value ?? []).withUnsafeBytes { value in
        body(RequestRecord(key: part(2), value: value, headers: fields, topic: part(0), position: position, cluster: part(1)))
      }
    }
  }
}

extension StoredRecord {
  /// Copies a record.
  init(_ record: RecordView) {
    var headers: [Header] = []
    record.forEachHeader { headers.append(Header($0, $1)) }
    self.init(key: record.key.map(Array.init), value: record.value.map(Array.init), headers: headers)
  }
}
