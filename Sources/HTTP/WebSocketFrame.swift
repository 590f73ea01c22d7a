import EventLoop

/// One whole frame, which is encoded once and shared by every connection that sends it.
///
/// It has the form of a server's frame. A client's connection masks a copy.
public struct WebSocketFrame: Sendable {
  /// A frame's opcode (RFC 6455, section 5.2).
  enum Opcode {
    static let continuation: UInt8 = 0
    static let text: UInt8 = 1
    static let binary: UInt8 = 2
    static let close: UInt8 = 8
    static let ping: UInt8 = 9
    static let pong: UInt8 = 10
  }

  /// The most bytes of a control frame.
  static let maximumControlBytes = 125

  let bytes: SharedBytes

  /// A text message; `fill` writes all of its `count` bytes, which must be UTF-8.
  public static func text(count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> WebSocketFrame {
    make(Opcode.text, count, fill)
  }

  static let ping = make(Opcode.ping, 0) { _ in }

  static func pong(_ payload: UnsafeRawBufferPointer) -> WebSocketFrame {
    make(Opcode.pong, payload.count) { $0.copyMemory(from: payload) }
  }

  /// - Parameter code: nil for a close frame without one.
  static func close(_ code: WebSocketCloseCode?, _ reason: String) -> WebSocketFrame {
    guard let code else { return make(Opcode.close, 0) { _ in } }
    var text = reason
    // Only whole characters, as many as fit.
    while text.utf8.count > maximumControlBytes - 2 { text.removeLast() }
    return text.withUTF8 { utf8 in
      make(Opcode.close, 2 + utf8.count) { payload in
        payload.storeBytes(of: code.rawValue.bigEndian, as: UInt16.self)
        UnsafeMutableRawBufferPointer(rebasing: payload[2...]).copyMemory(from: UnsafeRawBufferPointer(utf8))
      }
    }
  }

  static func make(_ opcode: UInt8, _ count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> WebSocketFrame {
    let header = headerBytes(count)
    return WebSocketFrame(
      bytes: .make(count: header + count) { buffer in
        writeHeader(opcode, count, masked: false, buffer)
        fill(UnsafeMutableRawBufferPointer(rebasing: buffer[header...]))
      })
  }

  /// The client's form of the frame (RFC 6455, section 5.3).
  func masked(with mask: UInt32) -> SharedBytes {
    bytes.withUnsafeBytes { plain in
      let header = Self.headerBytes(ofFrame: plain)
      let count = plain.count - header
      return .make(count: plain.count + 4) { buffer in
        Self.writeHeader(plain[0] & 0x0F, count, masked: true, buffer)
        withUnsafeBytes(of: mask) { key in
          for index in 0..<4 { buffer[header + index] = key[index] }
          for index in 0..<count { buffer[header + 4 + index] = plain[header + index] ^ key[index & 3] }
        }
      }
    }
  }

  private static func headerBytes(_ count: Int) -> Int { count < 126 ? 2 : count < 65_536 ? 4 : 10 }

  private static func headerBytes(ofFrame frame: UnsafeRawBufferPointer) -> Int {
    switch frame[1] & 0x7F {
    case 126: 4
    case 127: 10
    default: 2
    }
  }

  private static func writeHeader(_ opcode: UInt8, _ count: Int, masked: Bool, _ buffer: UnsafeMutableRawBufferPointer) {
    let maskBit: UInt8 = masked ? 0x80 : 0
    buffer[0] = 0x80 | opcode
    switch headerBytes(count) {
    case 2: buffer[1] = maskBit | UInt8(count)
    case 4:
      buffer[1] = maskBit | 126
      buffer.storeBytes(of: UInt16(count).bigEndian, toByteOffset: 2, as: UInt16.self)
    default:
      buffer[1] = maskBit | 127
      buffer.storeBytes(of: UInt64(count).bigEndian, toByteOffset: 2, as: UInt64.self)
    }
  }
}
