/// An argument of a command: a text, a number or bytes. For cold paths.
public enum RedisArgument: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral {
  /// The UTF-8 of a text.
  case text(String)
  /// A number in decimal.
  case integer(Int64)
  /// Any bytes.
  case bytes([UInt8])

  /// A literal text.
  public init(stringLiteral text: String) { self = .text(text) }

  /// A literal number.
  public init(integerLiteral number: Int64) { self = .integer(number) }
}

extension RedisCommand {
  /// Appends an argument.
  public mutating func append(_ argument: RedisArgument) {
    switch argument {
    case .text(let text): append(text)
    case .integer(let number): append(number)
    case .bytes(let bytes): append(bytes)
    }
  }

  /// Appends arguments.
  public mutating func append(all arguments: some Sequence<RedisArgument>) { for argument in arguments { append(argument) } }
}
