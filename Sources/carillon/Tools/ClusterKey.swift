import Cryptography
import Glibc
import Worker

/// The key that device credentials are signed with: a file with 32 random bytes or more in base64url.
enum ClusterKey {
  /// Reads a key's file.
  static func read(_ path: String) throws(Failure) -> [UInt8] {
    let bytes = try Descriptor.contents(of: path, limit: 4096)
    let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined()
    guard let key = Base64.decode(url: text), key.count >= CompactSignature.shortestKey else {
      throw Failure(
        .wrongUsage,
        "\(path) holds no key: it must be at least \(CompactSignature.shortestKey) bytes in base64url. 'carillon token key \(path)' makes one"
      )
    }
    return key
  }

  /// Makes a file with a new key, for its owner only; one that exists is left alone.
  static func create(_ path: String) throws(Failure) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Failure(.wrongUsage, "\(path) cannot be made: \(String(cString: strerror(errno)))") }
    let text = RandomBytes.make(count: 32).withUnsafeBytes { Base64.encode(url: $0) } + "\n"
    let bytes = Array(text.utf8)
    let count = bytes.withUnsafeBytes { Descriptor.write($0, to: file) }
    close(file)
    if count < bytes.count { throw Failure(.wrongUsage, "\(path) cannot be written: \(String(cString: strerror(errno)))") }
  }
}
