/// The category at the time of delivery, as far as responses are checked by it.
///
/// The receipt contains it.
///
/// | bytes | field |
/// |---|---|
/// | 1 | 1: the category was known; 2: dismissals are reported |
/// | 1 | number of actions |
/// | 4 each | the upper 31 bits of the identifier's stable hash, and 1 if the action takes text |
///
/// A hash of 31 bits is enough: a device that uses another name with the same hash deceives only itself.
public struct DeliveredCategory: Equatable, Sendable {
  private enum Bit {
    static let (known, dismissal) = (1 as UInt8, 2 as UInt8)
  }

  /// Whether the device or the application had defined the category.
  public let isKnown: Bool
  /// Whether an explicit dismissal is reported.
  public let tellsDismissal: Bool
  private let actions: [UInt32]

  /// Creates the present form of a category; `nil` for an unknown category.
  public init(_ category: NotificationCategory?) {
    isKnown = category != nil
    tellsDismissal = category?.options.contains(.customDismissAction) ?? false
    actions = category?.actions.map { Self.code($0.identifier) | ($0.textInput == nil ? 0 : 1) } ?? []
  }

  init?(_ reader: inout ByteReader) {
    guard let bits = reader.byte(), let count = reader.byte(), count <= NotificationCategory.maximumActions else { return nil }
    var actions: [UInt32] = []
    for _ in 0..<count {
      guard let action = reader.integer(UInt32.self) else { return nil }
      actions.append(action)
    }
    (isKnown, tellsDismissal, self.actions) = (bits & Bit.known != 0, bits & Bit.dismissal != 0, actions)
  }

  static func append(_ category: NotificationCategory?, to buffer: inout ByteBuffer) {
    guard let category else {
      buffer.append(0 as UInt8)
      return buffer.append(0 as UInt8)
    }
    buffer.append(Bit.known | (category.options.contains(.customDismissAction) ? Bit.dismissal : 0))
    buffer.append(UInt8(truncatingIfNeeded: category.actions.count))
    for action in category.actions { buffer.append(code(action.identifier) | (action.textInput == nil ? 0 : 1)) }
  }

  private static func code(_ identifier: Name) -> UInt32 { UInt32(truncatingIfNeeded: StableHash.hash(identifier) >> 32) & ~1 }

  /// Whether an action takes text; `nil` if the category has no such action.
  func takesText(_ identifier: Name) -> Bool? {
    let code = Self.code(identifier)
    return actions.first { $0 & ~1 == code }.map { $0 & 1 == 1 }
  }
}
