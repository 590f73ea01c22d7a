import Cryptography
import EventLoop
import Glibc
import Worker

/// A file of shared secrets, the cluster's keys or a publisher's: in each line at least 32 random bytes in base64url.
enum SecretFile {
  /// The warning about a file that others may read.
  private static let exposure: StaticString =
    "others may read the cluster's key, and sign credentials or publishers' tokens with it: chmod 600"
  /// The longest file.
  static let fileBytes = 4096
  /// The most keys. Each is tried for a credential that none of them has signed.
  private static let maximum = 8

  /// Reads the keys of a file.
  static func keys(_ file: InputFile) throws(Failure) -> KeyRing {
    let lines = file.bytes.split(separator: UInt8(ascii: "\n")).map {
      String(decoding: $0, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    }
    var keys: [KeyRing.Key] = []
    for words in lines where !words.isEmpty {
      guard words.count == 1, let bytes = Base64.decode(url: String(words[0])), bytes.count >= CompactSignature.shortestKey else {
        throw Failure(
          .wrongUsage,
          "\(file.path) holds no key\(lines.count > 1 ? " in one of its lines" : ""): each line must be at least \(CompactSignature.shortestKey) bytes in base64url. 'carillon token key' makes a new file with one"
        )
      }
      keys.append(KeyRing.Key(bytes))
    }
    guard !keys.isEmpty else { throw Failure(.wrongUsage, "\(file.path) holds no key: 'carillon token key' makes a new file with one") }
    guard keys.count <= maximum else { throw Failure(.wrongUsage, "\(file.path) has \(keys.count) keys: it may have \(maximum)") }
    guard Set(keys.map(\.id)).count == keys.count else { throw Failure(.wrongUsage, "\(file.path) has one key twice") }
    return KeyRing(keys)
  }

  /// Reads the keys of a worker's file, and warns if others may read it.
  static func keys(_ file: InputFile, _ logger: Logger) throws(Failure) -> KeyRing {
    let ring = try keys(file)
    if file.isExposed { logger.warning(exposure, ["file": file.path]) }
    return ring
  }

  /// Reads the key that a tool signs with, and warns the person who has typed the command if others may read it.
  static func signing(_ file: InputFile) throws(Failure) -> KeyRing.Key {
    let ring = try keys(file)
    if file.isExposed { StandardError.line("\(exposure) \(file.path)") }
    return ring.signing
  }

  /// Makes a file with a new key that only its owner may read; never overwrites a file.
  static func create(_ path: String) throws(Failure) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Failure(.wrongUsage, "\(path) cannot be created: \(String(cString: strerror(errno)))") }
    let text = RandomBytes.make(count: 32).withUnsafeBytes { Base64.encode(url: $0) } + "\n"
    let bytes = Array(text.utf8)
    let count = bytes.withUnsafeBytes { Descriptor.write($0, to: file) }
    close(file)
    if count < bytes.count { throw Failure(.wrongUsage, "\(path) cannot be written: \(String(cString: strerror(errno)))") }
  }
}
