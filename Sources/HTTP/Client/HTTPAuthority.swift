/// Host and port of a URL (RFC 3986, section 3.2), in one form for all spellings.
struct HTTPAuthority: Hashable {
  /// A name in lower case without a dot at its end, or a number: IPv6 without brackets.
  let host: String
  /// Whether the host is an address and not a name.
  let isNumeric: Bool
  /// 1 to 65535, if there is one.
  let port: Int?

  init(_ text: Substring) throws(HTTPTextFailure) {
    if text.contains("@") { throw HTTPTextFailure("a user or password before @ is not allowed") }
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else { throw HTTPTextFailure("write an international name in its xn-- form") }
    let name: Substring
    let rest: Substring
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { throw HTTPTextFailure("the bracket before an IPv6 address is not closed") }
      name = text[..<end].dropFirst()
      rest = text[end...].dropFirst()
    } else {
      let end = text.firstIndex(of: ":") ?? text.endIndex
      name = text[..<end]
      rest = text[end...]
    }
    if rest.isEmpty {
      port = nil
    } else {
      guard rest.hasPrefix(":"), rest.utf8.count <= 6, rest.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = Int(rest.dropFirst()), (1...65535).contains(number)
      else { throw HTTPTextFailure("after the host only a colon and a port of 1 to 65535 may come") }
      port = number
    }
    if text.hasPrefix("[") {
      // A zone would choose an interface of this machine.
      guard let address = IPAddress(String(name)), address.family == .v6 else {
        throw HTTPTextFailure("between brackets an IPv6 address without a zone must stand")
      }
      (host, isNumeric) = (address.description, true)
    } else {
      (host, isNumeric) = try Self.name(name)
    }
  }

  private static func name(_ text: Substring) throws(HTTPTextFailure) -> (String, Bool) {
    var name = text.lowercased()
    if name.hasSuffix(".") { name.removeLast() }
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    guard !name.isEmpty, name.utf8.count <= 253, labels.allSatisfy({ (1...63).contains($0.utf8.count) }) else {
      throw HTTPTextFailure("the host must be a name of labels with 1 to 63 characters, 253 in all")
    }
    guard name.utf8.allSatisfy({ isNameByte($0) }) else {
      throw HTTPTextFailure("the host may have letters, digits, hyphens, underscores and dots only")
    }
    // Resolvers read 2130706433, 0x7f.1 and 127.1 as addresses. A name's last label is not a number (RFC 3696, section 2).
    guard let last = labels.last, isNumber(last) else { return (name, false) }
    guard let address = IPAddress(name), address.family == .v4 else {
      throw HTTPTextFailure("a host that ends in a number must be an IPv4 address of four decimal numbers")
    }
    return (address.description, true)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
    default: false
    }
  }

  private static func isNumber(_ label: Substring) -> Bool {
    if label.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return true }
    return label.hasPrefix("0x") && label.dropFirst(2).utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
