public import Notifications

/// Bytes of requests that are written once and stay in place.
///
/// The last user of the arena releases it.
public final class Arena {
  /// The bytes written so far.
  public var bytes: ByteBuffer

  /// An empty arena with this capacity.
  public init(capacity: Int) { bytes = ByteBuffer(capacity: capacity) }

  /// Copies bytes into the arena.
  public func keep(_ bytes: UnsafeRawBufferPointer?) -> ArenaSpan {
    guard let bytes else { return ArenaSpan(start: self.bytes.count, count: 0) }
    return keep { $0.append(bytes) }
  }

  /// The text of a span.
  public func text(_ span: ArenaSpan) -> String { bytes.withUnsafeBytes { String(decoding: $0[span], as: UTF8.self) } }

  /// Writes into the arena, and answers the span that was written.
  public func keep(_ write: (inout ByteBuffer) -> Void) -> ArenaSpan {
    let start = bytes.count
    write(&bytes)
    return ArenaSpan(start: start, count: bytes.count - start)
  }
}

/// A span of an arena.
public struct ArenaSpan: Sendable {
  /// The first byte.
  var start: Int
  /// The number of bytes.
  public var count: Int

  /// A span of its parts; empty by default.
  public init(start: Int = 0, count: Int = 0) { (self.start, self.count) = (start, count) }
}

extension UnsafeRawBufferPointer {
  /// The bytes of a span.
  public subscript(span: ArenaSpan) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self[span.start..<span.start + span.count])
  }
}
