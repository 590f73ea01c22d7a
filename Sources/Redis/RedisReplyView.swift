import CHiredis

/// A reply in hiredis' memory, valid only during the call that gets it.
///
/// A question to a reply of another kind, or beyond its elements, answers nil, so an unexpected reply never traps. Elements belong to the
/// same memory, so they must not outlive the call either.
public struct RedisReplyView {
  /// The kinds of replies.
  public enum Kind: Sendable, Hashable {
    /// Nothing: no such key or field.
    case null
    /// A number.
    case integer
    /// `OK` and the like.
    case status
    /// A value.
    case bytes
    /// Several replies.
    case array
    /// An error, as an element of an array.
    case error
    /// A kind that this version of the protocol does not have.
    case unknown
  }

  private let reply: UnsafePointer<redisReply>

  init(_ reply: UnsafePointer<redisReply>) { self.reply = reply }

  /// The kind of the reply.
  public var kind: Kind {
    switch reply.pointee.type {
    case REDIS_REPLY_NIL: .null
    case REDIS_REPLY_INTEGER: .integer
    case REDIS_REPLY_STATUS: .status
    case REDIS_REPLY_STRING: .bytes
    case REDIS_REPLY_ARRAY: .array
    case REDIS_REPLY_ERROR: .error
    default: .unknown
    }
  }

  /// The value of an integer reply.
  public var integer: Int64? { reply.pointee.type == REDIS_REPLY_INTEGER ? Int64(reply.pointee.integer) : nil }

  /// The number of elements; 0 if it is not an array.
  public var count: Int { reply.pointee.type == REDIS_REPLY_ARRAY ? Int(reply.pointee.elements) : 0 }

  /// An element of an array; nil beyond the end.
  public subscript(_ index: Int) -> RedisReplyView? {
    guard index >= 0, index < count, let elements = reply.pointee.element, let element = elements[index] else { return nil }
    return RedisReplyView(element)
  }

  /// The bytes of a value or status in place, even if empty; nil for another kind.
  public var bytes: UnsafeRawBufferPointer? {
    switch reply.pointee.type {
    case REDIS_REPLY_STRING, REDIS_REPLY_STATUS: UnsafeRawBufferPointer(start: reply.pointee.str, count: Int(reply.pointee.len))
    default: nil
    }
  }

  /// A copy of a value's or status' text, with invalid UTF-8 replaced.
  public var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  /// Whether it is a value or status with exactly these bytes.
  func equals(_ text: StaticString) -> Bool {
    guard let bytes, bytes.count == text.utf8CodeUnitCount else { return false }
    return zip(bytes, UnsafeBufferPointer(start: text.utf8Start, count: bytes.count)).allSatisfy(==)
  }

  /// The error in an element of an array.
  var error: RedisError? {
    guard reply.pointee.type == REDIS_REPLY_ERROR else { return nil }
    let text = UnsafeRawBufferPointer(start: reply.pointee.str, count: Int(reply.pointee.len))
    return RedisError(reply: String(decoding: text, as: UTF8.self))
  }

  /// A copy to keep.
  public var value: RedisValue {
    switch kind {
    case .null, .unknown: return .null
    case .integer: return .integer(Int64(reply.pointee.integer))
    case .status: return .status(text ?? "")
    case .bytes: return .bytes(bytes.map { Array($0) } ?? [])
    case .error: return error.map { .error($0) } ?? .null
    case .array:
      var elements: [RedisValue] = []
      // hiredis refuses replies that are nested deeper than seven, so this ends. All announced elements have arrived.
      elements.reserveCapacity(count)
      for index in 0..<count { elements.append(self[index]?.value ?? .null) }
      return .array(elements)
    }
  }
}

/// Gets the reply or the failure of each accepted call, exactly once, on the loop.
///
/// Both functions may make calls and close the connection.
public protocol RedisReplyHandler: AnyObject {
  /// The reply has arrived. It is valid only during this call.
  func redisReplied(tag: UInt64, reply: RedisReplyView)
  /// The server answered with an error, or no reply will come.
  func redisFailed(tag: UInt64, error: RedisError)
}
