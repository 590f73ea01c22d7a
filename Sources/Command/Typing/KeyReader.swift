/// A key of a terminal that edits a line.
enum Key: Equatable {
  case character(Unicode.Scalar)
  case enter
  case left, right, wordLeft, wordRight, home, end
  /// The older and the newer line.
  case up, down
  case backspace, delete, deleteWord, deleteToStart, deleteToEnd
  /// Ctrl-D: deletes in a line, and ends the input in an empty one.
  case endOfInput
  case redraw
}

/// Reads keys from a terminal's bytes, which may come in pieces of any size. A value.
///
/// It ignores unknown escape sequences, unknown control characters, and bytes that are not UTF-8.
struct KeyReader {
  private enum Phase {
    case plain
    /// After ESC.
    case escape
    /// In a control sequence (ECMA-48), or after ESC O; with its parameters.
    case sequence([UInt8])
    /// In a character of several bytes.
    case character([UInt8], count: Int)
  }

  private var phase = Phase.plain
  /// The most parameters of a control sequence. A longer one is unknown.
  private static let maximumParameters = 16

  /// Takes the next byte; returns the key that it completes.
  mutating func take(_ byte: UInt8) -> Key? {
    switch phase {
    case .plain: return plain(byte)
    case .escape: return escape(byte)
    case .sequence(let parameters): return sequence(parameters, byte)
    case .character(let bytes, let count):
      guard byte & 0xC0 == 0x80 else { return plain(byte) }
      guard bytes.count + 1 == count else {
        phase = .character(bytes + [byte], count: count)
        return nil
      }
      phase = .plain
      return String(validating: bytes + [byte], as: UTF8.self)?.unicodeScalars.first.flatMap(Self.character)
    }
  }

  private mutating func plain(_ byte: UInt8) -> Key? {
    phase = .plain
    switch byte {
    case 0x1B: phase = .escape
    case 0x20..<0x7F: return .character(Unicode.Scalar(byte))
    case 0xC2...0xDF: phase = .character([byte], count: 2)
    case 0xE0...0xEF: phase = .character([byte], count: 3)
    case 0xF0...0xF4: phase = .character([byte], count: 4)
    default: return Self.controls[byte]
    }
    return nil
  }

  /// As in Emacs and all shells.
  private static let controls: [UInt8: Key] = [
    0x01: .home, 0x02: .left, 0x04: .endOfInput, 0x05: .end, 0x06: .right, 0x08: .backspace, 0x0A: .enter, 0x0B: .deleteToEnd,
    0x0C: .redraw, 0x0D: .enter, 0x0E: .down, 0x10: .up, 0x15: .deleteToStart, 0x17: .deleteWord, 0x7F: .backspace,
  ]

  private mutating func escape(_ byte: UInt8) -> Key? {
    phase = .plain
    switch byte {
    case UInt8(ascii: "["), UInt8(ascii: "O"): phase = .sequence([])
    case UInt8(ascii: "b"): return .wordLeft
    case UInt8(ascii: "f"): return .wordRight
    case 0x7F: return .deleteWord
    // A key with its own meaning after Escape, or another sequence.
    case 0x00..<0x20: return plain(byte)
    default: break
    }
    return nil
  }

  private mutating func sequence(_ parameters: [UInt8], _ byte: UInt8) -> Key? {
    phase = .plain
    switch byte {
    case 0x20..<0x40:
      phase = .sequence(parameters.count < Self.maximumParameters ? parameters + [byte] : parameters)
      return nil
    case 0x40..<0x7F: break
    default: return plain(byte)
    }
    // The second parameter says which of Shift, Alt and Ctrl are held.
    let isModified = parameters.count == 3 && parameters.starts(with: "1;".utf8)
    switch byte {
    case UInt8(ascii: "A"): return .up
    case UInt8(ascii: "B"): return .down
    case UInt8(ascii: "C"): return isModified ? .wordRight : .right
    case UInt8(ascii: "D"): return isModified ? .wordLeft : .left
    case UInt8(ascii: "H"): return .home
    case UInt8(ascii: "F"): return .end
    case UInt8(ascii: "~"):
      switch parameters {
      case [UInt8(ascii: "1")], [UInt8(ascii: "7")]: return .home
      case [UInt8(ascii: "4")], [UInt8(ascii: "8")]: return .end
      case [UInt8(ascii: "3")]: return .delete
      default: return nil
      }
    default: return nil
    }
  }

  private static func character(_ scalar: Unicode.Scalar) -> Key? {
    scalar.properties.generalCategory == .control ? nil : .character(scalar)
  }
}
