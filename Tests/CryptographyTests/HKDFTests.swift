import Cryptography
import Testing

@Suite struct HKDFTests {
  private struct Case {
    let input, salt, info: [UInt8]
    let key, output: String
  }

  /// RFC 5869, appendix A: test cases 1 to 3, those with SHA-256.
  private static let cases = [
    Case(
      input: [UInt8](repeating: 0x0B, count: 22), salt: Array(0x00...0x0C), info: Array(0xF0...0xF9),
      key: "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
      output: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
    Case(
      input: Array(0x00...0x4F), salt: Array(0x60...0xAF), info: Array(0xB0...0xFF),
      key: "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
      output: "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        + "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"),
    Case(
      input: [UInt8](repeating: 0x0B, count: 22), salt: [], info: [],
      key: "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
      output: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
  ]

  @Test(arguments: cases.indices)
  func derivedBytesAreThoseOfTheStandardHoweverManyAreWanted(_ index: Int) throws {
    let vector = Self.cases[index]
    let key = vector.input.withUnsafeBytes { HKDF.extract(salt: vector.salt, inputKeyingMaterial: $0) }
    #expect(key.hex == vector.key)
    let output = try #require([UInt8](hex: vector.output))
    let prepared = HMACKey(key)
    for count in 0...output.count { #expect(HKDF.expand(prepared, info: vector.info, count: count) == Array(output.prefix(count))) }
  }

  @Test func theLongestOutputBeginsAsEveryShorterOne() {
    let key = HMACKey(Array(0..<32))
    let longest = HKDF.expand(key, info: [1], count: HKDF.maximumBytes)
    #expect(longest.count == 8160 && Set(stride(from: 0, to: 8160, by: 32).map { Array(longest[$0..<$0 + 32]) }).count == 255)
    #expect(HKDF.expand(key, info: [1], count: 8129) == Array(longest.prefix(8129)))
    #expect(HKDF.expand(key, info: [2], count: 32) != Array(longest.prefix(32)))
  }
}
