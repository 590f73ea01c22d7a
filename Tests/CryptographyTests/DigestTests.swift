import Cryptography
import Testing

@Suite struct DigestTests {
  /// The examples of FIPS 180-4, and the empty message.
  @Test(arguments: [
    ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      String(repeating: "a", count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    ),
  ])
  func digestsAreThoseOfTheStandard(_ message: String, _ sha1: String, _ sha256: String) {
    #expect(Digest.sha1(message).hex == sha1)
    #expect(Digest.sha256(message).hex == sha256)
    Array(message.utf8).withUnsafeBytes { bytes in
      #expect(Digest.sha1(bytes).hex == sha1)
      #expect(Digest.sha256(bytes).hex == sha256)
    }
  }

  @Test func bytesThatComePieceByPieceHaveTheSameDigest() {
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for size in [1, 3, 64, 65, 1000] {
      let digest = RunningDigest()
      for start in stride(from: 0, to: bytes.count, by: size) {
        bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { digest.append($0) }
      }
      #expect(digest.finish() == bytes.withUnsafeBytes { Digest.sha256($0) })
    }
    #expect(RunningDigest().finish() == Digest.sha256(""))
  }

  @Test func theAcceptKeyOfRFC6455IsMade() {
    let digest = Digest.sha1("dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
    #expect(digest.withUnsafeBytes { Base64.encode($0) } == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
  }
}

@Suite struct RandomBytesTests {
  @Test func randomBytesComeInTheLengthAskedForAndDoNotRepeat() {
    for count in [0, 1, 16, 1000] { #expect(RandomBytes.make(count: count).count == count) }
    #expect(Set((0..<1000).map { _ in RandomBytes.make(count: 16) }).count == 1000)
    let numbers = (0..<1000).map { _ in RandomBytes.number() }
    #expect(Set(numbers).count == 1000)
    // All 64 bits are in use: that one of them stays the same a thousand times has a chance of 2^-993.
    #expect(numbers.reduce(0, |) == .max && numbers.reduce(.max, &) == 0)
  }
}
