import Cryptography
import EventLoop
import Glibc
import Worker

/// The key that signs device credentials. It is a file with at least 32 random bytes in base64url.
struct ClusterKey: Sendable {
  let bytes: [UInt8]
  /// Its file, if users beside its owner may read it; otherwise nil.
  let exposedFile: String?

  /// The warning about a file that others may read.
  static let exposure: StaticString = "others may read the cluster's key, and sign credentials or publishers' tokens with it: chmod 600"
  /// The longest file of a key.
  static let fileBytes = 4096

  /// Reads the key from its file.
  init(_ file: InputFile) throws(Failure) {
    let path = file.path
    let text = String(decoding: file.bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined()
    guard let key = Base64.decode(url: text), key.count >= CompactSignature.shortestKey else {
      throw Failure(
        .wrongUsage,
        "\(path) holds no key: it must be at least \(CompactSignature.shortestKey) bytes in base64url. 'carillon token key' makes a new file with one"
      )
    }
    bytes = key
    exposedFile = file.mode & 0o077 == 0 ? nil : path
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
