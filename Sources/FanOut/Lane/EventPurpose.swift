/// The part of the lane that gets the report of an event, and its number there. Both make the record's opaque.
enum EventPurpose: Equatable {
  /// No part needs the report.
  case nothing
  /// A slot of `PendingOutcomes`.
  case outcome(Int)
  /// A slot of `Responses`.
  case response(Int)
  /// A number of `AwaitedEvents`.
  case awaited(Int)

  private static let numberBits: UInt64 = 32

  /// The opaque of the record, which the report returns.
  var opaque: UInt64 {
    switch self {
    case .nothing: 0
    case .outcome(let number): 1 << Self.numberBits | UInt64(number)
    case .response(let number): 2 << Self.numberBits | UInt64(number)
    case .awaited(let number): 3 << Self.numberBits | UInt64(number)
    }
  }

  /// Reads the purpose from an opaque.
  init(opaque: UInt64) {
    let number = Int(opaque & (1 << Self.numberBits - 1))
    switch opaque >> Self.numberBits {
    case 1: self = .outcome(number)
    case 2: self = .response(number)
    case 3: self = .awaited(number)
    default: self = .nothing
    }
  }
}
