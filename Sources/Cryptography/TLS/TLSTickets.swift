import COpenSSL
import Glibc

/// The keys of session tickets (RFC 5077, section 4; RFC 8446, section 4.6.1).
///
/// They derive from a secret and the number of the day, so all workers with the same secret resume each other's sessions, and nobody hands
/// out new keys. Tickets of today and yesterday are taken, by each of the secrets in force; the first makes new ones.
final class TLSTickets {
  private struct DayKey {
    let day: Int
    let name: [UInt8]
    let cipher: [UInt8]
    let code: [UInt8]
  }

  private static let (nameBytes, keyBytes, secondsOfDay) = (16, 32, 86_400)

  private let secrets: DerivedKeys
  private let now: () -> Int
  /// Those of today and yesterday; the first makes tickets.
  private var keys: [DayKey] = []

  /// - Parameters:
  ///   - secrets: hard to guess; the same in all workers that resume each other's sessions.
  ///   - now: the seconds since 1970.
  init(_ secrets: InForce<KeyRing>, now: @escaping () -> Int) {
    self.secrets = DerivedKeys(of: secrets, for: "carillon tickets")
    self.now = now
  }

  private func present() -> [DayKey] {
    let today = now() / Self.secondsOfDay
    if secrets.update() || keys.first?.day != today {
      keys = secrets.prepared.flatMap { [Self.key(of: today, $0), Self.key(of: today - 1, $0)] }
    }
    return keys
  }

  private static func key(of day: Int, _ secret: HMACKey) -> DayKey {
    let bytes = HKDF.expand(secret, info: Array("ticket \(day)".utf8), count: nameBytes + 2 * keyBytes)
    return DayKey(
      day: day, name: Array(bytes.prefix(nameBytes)), cipher: Array(bytes.dropFirst(nameBytes).prefix(keyBytes)),
      code: Array(bytes.suffix(keyBytes)))
  }

  /// Prepares the encryption of a new ticket, as OpenSSL's callback; writes the key's name and the initial vector.
  func seal(
    _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer?, _ code: OpaquePointer?
  ) -> Int32 {
    guard let key = present().first, RAND_bytes(vector, EVP_MAX_IV_LENGTH) == 1,
      EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector) == 1,
      carillon_tls_ticket_code(code, key.code, Self.keyBytes) == 1
    else { return -1 }
    name.update(from: key.name, count: Self.nameBytes)
    return 1
  }

  /// Prepares the decryption of a ticket: 0 for an unknown one, 1 for one that is taken, and 2 if it is also replaced.
  func open(
    _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer?, _ code: OpaquePointer?,
    isReplaced: Bool
  ) -> Int32 {
    guard let key = present().first(where: { memcmp($0.name, name, Self.nameBytes) == 0 }) else { return 0 }
    let isPrepared =
      EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector) == 1
      && carillon_tls_ticket_code(code, key.code, Self.keyBytes) == 1
    return isPrepared ? isReplaced ? 2 : 1 : -1
  }
}
