public import Notifications

/// Bytes that are written once and stay where they are until all that needs them has let go: what requests are made of. Loop-confined.
public final class Arena {
  /// What was written so far.
  public var bytes: ByteBuffer

  /// An empty one with room for so many bytes.
  public init(capacity: Int) { bytes = ByteBuffer(capacity: capacity) }

  /// Copies bytes into the arena.
  public func keep(_ bytes: UnsafeRawBufferPointer?) -> ArenaSpan {
    guard let bytes else { return ArenaSpan(start: self.bytes.count, count: 0) }
    return keep { $0.append(bytes) }
  }

  /// A stretch of it as text.
  public func text(_ span: ArenaSpan) -> String { bytes.withUnsafeBytes { String(decoding: $0[span], as: UTF8.self) } }

  /// Writes into the arena, and answers where.
  public func keep(_ write: (inout ByteBuffer) -> Void) -> ArenaSpan {
    let start = bytes.count
    write(&bytes)
    return ArenaSpan(start: start, count: bytes.count - start)
  }
}

/// A stretch of an arena.
public struct ArenaSpan: Sendable {
  /// Where it begins.
  public var start: Int
  /// How many bytes it has.
  public var count: Int

  /// A stretch from its parts; nothing where none are given.
  public init(start: Int = 0, count: Int = 0) { (self.start, self.count) = (start, count) }
}

extension UnsafeRawBufferPointer {
  /// The bytes of a stretch.
  public subscript(span: ArenaSpan) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self[span.start..<span.start + span.count])
  }
}
