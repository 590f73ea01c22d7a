/// The result of a service extension. The raw value is part of stored records: never renumber.
public enum ExtensionState: UInt8, Sendable, CaseIterable {
  /// It changed the content.
  case modified = 1
  /// It finished, and left the content unchanged.
  case unchanged = 2
  /// It did not finish, and its content so far is used.
  case bestAttempt = 3
  /// It did not finish. Its setting says that the original content is used.
  case original = 4
  /// It did not finish in time and had no content. The original content is used.
  case timedOut = 5
  /// It failed, or its content breaks a rule. The original content is used.
  case failed = 6
  /// It was not called: too many calls were running, or it had failed too often.
  case overloaded = 7

  /// The word in records and tools.
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

/// The results of a notification's service extensions, as an entry contains them, in order.
///
/// Each has the state (1 byte), and the length (1 byte) and bytes of the name.
public struct ExtensionStates {
  /// The maximum number of extensions of an application, so that they fit into 255 bytes.
  public static var maximum: Int { 8 }
  /// The longest name of an extension, in bytes.
  public static var longestName: Int { 24 }

  private let bytes: UnsafeRawBufferPointer

  /// Reads the states of an entry's field, which they must not outlive.
  public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Calls `body` with the name and state of each. It stops at malformed bytes.
  public func forEach(_ body: (_ name: UnsafeRawBufferPointer, _ state: ExtensionState) -> Void) {
    var reader = ByteReader(bytes)
    while let state = reader.byte().flatMap(ExtensionState.init(rawValue:)), let name = reader.shortField() { body(name, state) }
  }

  /// Appends the state of one extension.
  ///
  /// - Parameter name: at most ``longestName`` bytes; a longer name is cut.
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
