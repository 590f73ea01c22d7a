import Cryptography

/// The number that stands for a name from outside where its bytes have no room: a person, an application, a device or an apns-id.
///
/// It is the first eight bytes of the name's SHA-256. A name with another one's number counts as that person or application. To find
/// one takes some 2^64 trials; a ``StableHash`` that others have is found in seconds.
public enum NameHash {
  /// Returns the number of a name's bytes.
  public static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    Digest.withSHA256(bytes) { UInt64(bigEndian: $0.load(as: UInt64.self)) }
  }

  /// Returns the number of a name.
  public static func hash(_ name: Name) -> UInt64 { name.withBytes { hash($0) } }

  /// Returns the number of a text's UTF-8.
  public static func hash(_ text: String) -> UInt64 {
    var text = text
    return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
  }

  /// Returns a user's number; never 0, which means no user.
  public static func user(_ user: UnsafeRawBufferPointer) -> UInt64 { max(hash(user), 1) }

  /// Returns a user's number; never 0, which means no user.
  public static func user(_ user: Name) -> UInt64 { user.withBytes { self.user($0) } }
}

/// Name hashes of the names that a lane has met last. Requests mostly name few applications again and again.
public final class RecentNameHashes {
  private var known: [(name: [UInt8], hash: UInt64)] = Array(repeating: ([], NameHash.hash("")), count: 64)

  /// Knows no name.
  public init() {}

  /// Returns the name hash of a name's bytes.
  public func hash(_ name: UnsafeRawBufferPointer) -> UInt64 {
    let place = Int(truncatingIfNeeded: StableHash.hash(name) % UInt64(known.count))
    if known[place].name.elementsEqual(name) { return known[place].hash }
    known[place] = (Array(name), NameHash.hash(name))
    return known[place].hash
  }
}
