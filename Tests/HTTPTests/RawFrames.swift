import TestSupport

/// Frames as bytes, made and read without the code under test.
struct RawFrame: Equatable, CustomStringConvertible {
  var opcode: UInt8
  var payload: [UInt8]

  static func text(_ text: String) -> RawFrame { RawFrame(opcode: 1, payload: Array(text.utf8)) }
  static func binary(_ bytes: [UInt8]) -> RawFrame { RawFrame(opcode: 2, payload: bytes) }
  static func pong(_ bytes: [UInt8]) -> RawFrame { RawFrame(opcode: 10, payload: bytes) }
  /// Compares by its code only.
  static func close(_ code: Int?) -> RawFrame { RawFrame(opcode: 8, payload: code.map { [UInt8($0 >> 8), UInt8($0 & 255)] } ?? []) }

  var closeCode: Int? { opcode == 8 && payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }

  var description: String {
    switch opcode {
    case 8: "close \(closeCode.map(String.init) ?? "-")"
    case 1 where payload.count < 80: "text '\(String(decoding: payload, as: UTF8.self))'"
    default: "opcode \(opcode), \(payload.count) bytes"
    }
  }

  /// Without a close frame's reason.
  var withoutReason: RawFrame { opcode == 8 ? .close(closeCode) : self }
}

/// How a frame's length is written.
enum LengthForm { case shortest, sixteenBits, sixtyFourBits }

/// A frame as a client sends it, or as none should.
func clientFrame(
  _ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, reserved: UInt8 = 0, isMasked: Bool = true, form: LengthForm = .shortest
) -> [UInt8] {
  var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
  let mask: UInt8 = isMasked ? 0x80 : 0
  let count = payload.count
  if form == .sixtyFourBits || count > 65_535 {
    bytes += [mask | 127] + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: UInt64(count) >> UInt64($0)) }
  } else if form == .sixteenBits || count > 125 {
    bytes += [mask | 126, UInt8(count >> 8), UInt8(count & 255)]
  } else {
    bytes.append(mask | UInt8(count))
  }
  guard isMasked else { return bytes + payload }
  let key: [UInt8] = [0x12, 0xF4, 0x56, 0x78]
  return bytes + key + payload.enumerated().map { $1 ^ key[$0 & 3] }
}

func clientText(_ text: String, isFinal: Bool = true) -> [UInt8] { clientFrame(1, Array(text.utf8), isFinal: isFinal) }

func clientClose(_ code: Int, _ reason: String = "") -> [UInt8] {
  clientFrame(8, [UInt8(code >> 8), UInt8(code & 255)] + Array(reason.utf8))
}

/// The frames that a server sent; nil when they are not whole, masked, or not final.
func serverFrames(_ bytes: [UInt8]) -> [RawFrame]? {
  var frames: [RawFrame] = []
  var rest = bytes[...]
  while !rest.isEmpty {
    guard rest.count >= 2, let first = rest.popFirst(), let second = rest.popFirst(), first & 0xF0 == 0x80, second & 0x80 == 0 else {
      return nil
    }
    var count = Int(second)
    if second >= 126 {
      let size = second == 126 ? 2 : 8
      guard rest.count >= size else { return nil }
      count = rest.prefix(size).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(size)
    }
    guard rest.count >= count else { return nil }
    frames.append(RawFrame(opcode: first & 15, payload: Array(rest.prefix(count))))
    rest = rest.dropFirst(count)
  }
  return frames
}

extension RawSocket {
  /// An upgrade request with the key of RFC 6455's example.
  static func upgrade(
    _ target: String = "/ws", version: String = "13", key: String = "dGhlIHNhbXBsZSBub25jZQ==", protocols: String? = "carillon.v1",
    more: String = ""
  ) -> String {
    "GET \(target) HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: \(version)\r\n"
      + "Sec-WebSocket-Key: \(key)\r\n" + (protocols.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? "") + more + "\r\n"
  }

  /// Connects and upgrades.
  static func webSocket(port: Int, _ target: String = "/ws", receiveBufferBytes: Int32? = nil) throws -> RawSocket {
    let socket = try RawSocket(port: port, receiveBufferBytes: receiveBufferBytes)
    try socket.send(upgrade(target))
    _ = try socket.read(through: "\r\n\r\n")
    return socket
  }

  /// The next frame of a server; nil at the end.
  func readFrame() throws -> RawFrame? {
    var bytes = try read(exactly: 2)
    guard bytes.count == 2 else { return nil }
    let size = bytes[1] == 126 ? 2 : bytes[1] == 127 ? 8 : 0
    let length = try read(exactly: size)
    let count = size == 0 ? Int(bytes[1]) : length.reduce(0) { $0 << 8 | Int($1) }
    bytes += length
    bytes += try read(exactly: count)
    return serverFrames(bytes)?.first
  }
}
