import TestSupport
import Testing

@testable import Notifications

@Suite struct IdentityTests {
  /// Values of the reference implementation for the first n bytes of 0, 1, 2, … under the seeds 0 and 0x9E3779B1.
  static let vectors: [(Int, UInt64, UInt64)] = [
    (0, 0xEF46DB3751D8E999, 0xAC75FDA2929B17EF),
    (1, 0xE934A84ADB052768, 0x5014607643A9B4C3),
    (3, 0xE5C7BB4533BC65DD, 0x47AA45ED39ED5541),
    (4, 0xFFCED8604453CC1E, 0xB8F1A51893FA14E6),
    (7, 0x14CC643F630C72D2, 0x13F31C4A8E5F8252),
    (8, 0x884A173614B81B8D, 0xCB74EF9D044DCF44),
    (12, 0x424AF23F1F08DCA5, 0x360A9AD658668EBC),
    (14, 0x5CDA8B69BBFC1D45, 0x9637A6A8D7711686),
    (31, 0xC346D2B59B4D8EE1, 0x71969C89A30A986A),
    (32, 0xCBF59C5116FF32B4, 0x7181354774E0D600),
    (33, 0x0C535D1ACAFB8EAD, 0x57BD8AD0A0390E6D),
    (63, 0xE26AA9E2A95F8E4F, 0x892362045C7BADFB),
    (64, 0xF7C67301DB6713F0, 0x6E545403B828CF8B),
    (100, 0x6AC1E58032166597, 0x8832442A88284F11),
    (222, 0x88FF0DADA4BFA877, 0x4C35046EBB437EF3),
    (256, 0x1FACBE8406CD904B, 0xD48195F45908996C),
  ]

  @Test(arguments: vectors)
  func theHashIsXXH64(_ count: Int, _ plain: UInt64, _ seeded: UInt64) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    bytes.withUnsafeBytes {
      #expect(StableHash.hash($0) == plain)
      #expect(StableHash.hash($0, seed: 0x9E37_79B1) == seeded)
    }
  }

  @Test func `a name's number is the beginning of its SHA-256, and a user's is never 0`() {
    #expect(NameHash.hash("ada") == 0xFDEE_430D_40BD_57DE)
    #expect(NameHash.user("ada") == NameHash.hash("ada") && NameHash.user("") != 0)
    // These have one XXH64.
    #expect(StableHash.hash("mallory_V3MayHTjXAsB1zUA") == StableHash.hash("ada"))
    #expect(NameHash.hash("mallory_V3MayHTjXAsB1zUA") != NameHash.hash("ada"))
  }

  @Test func aTokenIsNormalisedToLowerCase() throws {
    let upper = RequestFixture.token.uppercased()
    #expect(try #require(DeviceToken(upper)).text == RequestFixture.token)
    withBytes(upper) { bytes in
      #expect(DeviceToken.isValid(bytes))
      #expect(!DeviceToken.isNormal(bytes))
      #expect(DeviceToken.hash(bytes) == StableHash.hash(RequestFixture.token))
      var buffer = ByteBuffer()
      DeviceToken.append(bytes, to: &buffer)
      #expect(buffer.withUnsafeBytes { $0.text } == RequestFixture.token)
    }
    withBytes(RequestFixture.token) { #expect(DeviceToken.isNormal($0)) }
    for bad in [
      "", "ab", String(repeating: "a", count: 63), String(repeating: "a", count: 65), String(repeating: "a", count: 514), upper + "x0",
    ] {
      #expect(DeviceToken(bad) == nil)
    }
  }

  @Test func anIDKeepsItsForms() throws {
    let text = "00112233-4455-6677-8899-aabbccddeeff"
    let id = try #require(NotificationID(text))
    #expect(id == NotificationID(high: 0x0011_2233_4455_6677, low: 0x8899_AABB_CCDD_EEFF))
    #expect(id.description == text)
    #expect(id.withBytes { NotificationID(bytes: $0) } == id)
    #expect(id.hash64 == id.withBytes { StableHash.hash($0) })
    // SHA-256 of the sixteen bytes, and of these and "a", by another implementation.
    #expect(id.windowHash == 0xA8FA_ED6A_BBF3_5C12)
    #expect(withBytes("a") { id.derived($0) }.description == "82810280-5b2e-8b64-b3fa-71599d529a9c")
    #expect(withBytes("a") { id.derived($0) } != withBytes("b") { id.derived($0) })
    #expect(withBytes("a") { id.derived($0) } == withBytes("a") { id.derived($0) })
  }

  @Test func revisionsCompareAlikeAsValuesBytesAndText() {
    var random = SeededRandom(seed: 7)
    func any() -> Revision {
      Revision(
        timestamp: .random(in: 0...3, using: &random) << 40, partition: .random(in: 0...3, using: &random),
        offset: .random(in: 250...260, using: &random))
    }
    for _ in 0..<500 {
      let (left, right) = (any(), any())
      func bytes(_ revision: Revision) -> [UInt8] {
        var buffer = ByteBuffer()
        revision.append(to: &buffer)
        return buffer.withUnsafeBytes { Array($0) }
      }
      #expect(left.isKeptBefore(right) == bytes(left).lexicographicallyPrecedes(bytes(right)))
      #expect(left.isKeptBefore(right) == Array(left.description.utf8).lexicographicallyPrecedes(Array(right.description.utf8)))
      #expect(Revision(left.description) == left)
      #expect(bytes(left).withUnsafeBytes { Revision(bytes: $0) } == left)
    }
    #expect(Revision(String(repeating: "A", count: 40)) == nil)
    #expect(Revision(SourcePosition(partition: -1, offset: -1, timestamp: -1)) == Revision(timestamp: 0, partition: 0, offset: 0))
  }

  @Test func timesAreWrittenAndReadByRFC3339() {
    for (milliseconds, text) in [
      (0, "1970-01-01T00:00:00.000Z"), (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (1_763_720_383_007, "2025-11-21T10:19:43.007Z"), (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] as [(Int64, String)] {
      #expect(Timestamp.text(milliseconds) == text)
      #expect(Timestamp.parse(text) == milliseconds)
    }
    #expect(Timestamp.text(-1) == "1970-01-01T00:00:00.000Z")
    #expect(Timestamp.text(.max) == "9999-12-31T23:59:59.999Z")
    #expect(Timestamp.parse("2025-11-21T11:49:43+01:30") == 1_763_720_383_000)
    #expect(Timestamp.parse("2025-11-21t10:19:43.0071234z") == 1_763_720_383_007)
    for bad in [
      "", "2025-11-21", "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z", "2025-11-21T24:00:00Z", "2025-11-21T10:19:43",
      "2025-11-21T10:19:43.Z", "2025-11-21T10:19:43Zx",
    ] {
      #expect(Timestamp.parse(bad) == nil)
    }
    var random = SeededRandom(seed: 1)
    for _ in 0..<2000 {
      let time = Int64.random(in: 0...Timestamp.latest, using: &random)
      #expect(Timestamp.parse(Timestamp.text(time)) == time)
    }
  }
}
