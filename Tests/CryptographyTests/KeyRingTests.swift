import Cryptography
import Testing

/// A ring of keys that are made of one byte each.
func ring(_ bytes: [UInt8]) -> InForce<KeyRing> {
  InForce(KeyRing(bytes.map { KeyRing.Key([UInt8](repeating: $0, count: 32)) }))
}

/// A key is replaced in three steps, and what the former one has signed holds until the last.
@Suite struct KeyRingTests {
  private let message = Array("a receipt".utf8)

  private func code(_ keys: DerivedKeys) -> [UInt8] { message.withUnsafeBytes { keys.signing.authenticationCode($0) } }

  private func holds(_ code: [UInt8], _ keys: DerivedKeys) -> Bool {
    code.withUnsafeBytes { code in message.withUnsafeBytes { keys.verify(code, of: $0) } }
  }

  @Test func whatAFormerKeyHasSignedHoldsUntilItLeaves() {
    let ring = ring([1])
    let (keys, other) = (DerivedKeys(of: ring, for: "a"), DerivedKeys(of: ring, for: "b"))
    let first = code(keys)
    #expect(holds(first, keys) && !holds(first, other), "of another purpose")

    ring.replace(with: CryptographyTests.ring([1, 2]).value)
    #expect(code(keys) == first && holds(first, keys), "the second key only verifies")
    let ofTheSecond = code(DerivedKeys(of: CryptographyTests.ring([2]), for: "a"))
    #expect(holds(ofTheSecond, keys), "a worker that is one step ahead has signed it")

    ring.replace(with: CryptographyTests.ring([2, 1]).value)
    #expect(code(keys) == ofTheSecond && holds(first, keys))

    ring.replace(with: CryptographyTests.ring([2]).value)
    #expect(holds(ofTheSecond, keys) && !holds(first, keys))
  }

  @Test func aKeyIsNamedByWhatDoesNotRevealIt() {
    let keys = (0..<200).map { KeyRing.Key([UInt8](repeating: $0, count: 32)) }
    #expect(Set(keys.map(\.id)).count == keys.count)
    #expect(keys.allSatisfy { $0.id.utf8.count == 8 && $0.id.allSatisfy(\.isHexDigit) })
  }
}
