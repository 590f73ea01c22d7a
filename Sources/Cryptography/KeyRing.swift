/// Secrets of which the first signs and each verifies, so that one can be replaced while texts of the former one still hold.
public struct KeyRing: Sendable, Equatable {
  /// One secret.
  public struct Key: Sendable, Equatable {
    /// Its bytes.
    public let bytes: [UInt8]
    /// What distinguishes it from others in a token's header (`kid`: RFC 7515, section 4.1.4), in logs and in metrics, and does not reveal
    /// it: some bytes of a code, in hexadecimal.
    public let id: String

    /// Makes a key of its bytes, which should be at least ``CompactSignature/shortestKey``.
    public init(_ bytes: [UInt8]) {
      self.bytes = bytes
      id = Self.name(Self.derive(bytes, "carillon fingerprint"))
    }

    /// A name of four bytes, in hexadecimal.
    static func name(_ code: [UInt8]) -> String {
      code.prefix(4).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// The key that derives from it for one purpose, so that the signatures of two purposes cannot be confused.
    public func derived(for purpose: String) -> [UInt8] { Self.derive(bytes, purpose) }

    private static func derive(_ bytes: [UInt8], _ purpose: String) -> [UInt8] {
      Array(purpose.utf8).withUnsafeBytes { HMACKey(bytes).authenticationCode($0) }
    }
  }

  /// The keys; at least one.
  public let keys: [Key]

  /// Makes a ring of at least one key.
  public init(_ keys: [Key]) {
    precondition(!keys.isEmpty, "a ring has a key that signs")
    self.keys = keys
  }

  /// The key that signs.
  public var signing: Key { keys[0] }
}

/// The keys of one purpose, which derive from the ring that is in force. Confined to one thread at a time.
public final class DerivedKeys {
  private let ring: InForce<KeyRing>
  private let purpose: String
  private var known: InForce<KeyRing>.Version
  /// The prepared keys as of the last ``update()``. The first signs.
  public private(set) var prepared: [HMACKey]

  /// Prepares the keys of a purpose.
  public init(of ring: InForce<KeyRing>, for purpose: String) {
    (self.ring, self.purpose) = (ring, purpose)
    known = ring.current
    prepared = Self.prepare(known.value, purpose)
  }

  private static func prepare(_ ring: KeyRing, _ purpose: String) -> [HMACKey] { ring.keys.map { HMACKey($0.derived(for: purpose)) } }

  /// Prepares the ring that is in force, if it is another one.
  ///
  /// - Returns: whether it was another one.
  public func update() -> Bool {
    guard ring.update(&known) else { return false }
    prepared = Self.prepare(known.value, purpose)
    return true
  }

  /// The key that signs now.
  public var signing: HMACKey {
    _ = update()
    return prepared[0]
  }

  /// Whether one of the keys in force has made a code of a message: ``HMACKey/verify(_:of:)``.
  public func verify(_ code: UnsafeRawBufferPointer, of message: UnsafeRawBufferPointer) -> Bool {
    _ = update()
    return prepared.contains { $0.verify(code, of: message) }
  }
}
