/// What became of a notification at one service extension. The raw value stands in stored records: never renumber.
public enum ExtensionState: UInt8, Sendable, CaseIterable {
  /// It has changed the content.
  case modified = 1
  /// It has finished, and left the content as it was.
  case unchanged = 2
  /// It did not finish, and what it had by then is used.
  case bestAttempt = 3
  /// It did not finish, and its own setting says that the content stays as it was given.
  case original = 4
  /// It did not finish in time, and had nothing: the content stays as it was given.
  case timedOut = 5
  /// It has failed, or what it returned breaks a rule: the content stays as it was given.
  case failed = 6
  /// It was not called, since too much was under way, or since it has failed too often of late.
  case overloaded = 7

  /// The word of records and tools.
  public var word: StaticString {
    switch self {
    case .modified: "modified"
    case .unchanged: "unchanged"
    case .bestAttempt: "best-attempt"
    case .original: "original"
    case .timedOut: "timed-out"
    case .failed: "failed"
    case .overloaded: "overloaded"
    }
  }
}

/// The service extensions that a notification has passed, as an entry has them: of each the state (1 byte) and the name behind its length
/// (1 byte), in the order in which they were passed.
public struct ExtensionStates {
  /// The maximum number of extensions that an application has: so many fit into a field of 255 bytes.
  public static var maximum: Int { 8 }
  /// The longest name of an extension, in bytes.
  public static var longestName: Int { 24 }

  private let bytes: UnsafeRawBufferPointer

  /// The states in an entry's field, which they must not outlive.
  public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Calls `body` with the name and the state of each; what no worker has written ends it.
  public func forEach(_ body: (_ name: UnsafeRawBufferPointer, _ state: ExtensionState) -> Void) {
    var reader = ByteReader(bytes)
    while let state = reader.byte().flatMap(ExtensionState.init(rawValue:)), let name = reader.shortField() { body(name, state) }
  }

  /// Appends one extension's.
  ///
  /// - Parameter name: of at most ``longestName`` bytes; a longer one is cut.
  public static func append(_ state: ExtensionState, name: String, to buffer: inout ByteBuffer) {
    var name = name
    name.withUTF8 { bytes in
      let name = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes).prefix(longestName))
      buffer.append(state.rawValue)
      buffer.append(UInt8(name.count))
      buffer.append(name)
    }
  }
}
