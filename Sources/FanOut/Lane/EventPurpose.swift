/// What an event is emitted for: whoever gets its report, and under which number; a produced record's opaque.
enum EventPurpose: Equatable {
  /// Nobody waits for it.
  case nothing
  /// A slot of `Acknowledgements`.
  case acknowledgement(Int)
  /// A slot of `Responses`.
  case response(Int)
  /// A number of `AwaitedEvents`.
  case awaited(Int)

  private static let numberBits: UInt64 = 32

  /// The opaque that comes back with the report.
  var opaque: UInt64 {
    switch self {
    case .nothing: 0
    case .acknowledgement(let number): 1 << Self.numberBits | UInt64(number)
    case .response(let number): 2 << Self.numberBits | UInt64(number)
    case .awaited(let number): 3 << Self.numberBits | UInt64(number)
    }
  }

  /// Reads an opaque.
  init(opaque: UInt64) {
    let number = Int(opaque & (1 << Self.numberBits - 1))
    switch opaque >> Self.numberBits {
    case 1: self = .acknowledgement(number)
    case 2: self = .response(number)
    case 3: self = .awaited(number)
    default: self = .nothing
    }
  }
}
