import Cryptography
import EventLoop
import Glibc
import HTTP
import Kafka
import Testing

/// What a thread that still runs finds while the process ends: in processes of their own, which end by `exit`.
@Suite struct OpenSSLTests {
  @Test func `OpenSSL works until the process is gone, whichever part of it came first`() async {
    // What is registered first is called last, after what OpenSSL would have registered.
    await #expect(processExitsWith: .success) {
      atexit { precondition(Digest.sha256("late").count == 32) }
      _ = Digest.sha256("early")
      exit(EXIT_SUCCESS)
    }
    await #expect(processExitsWith: .success) {
      atexit { precondition(RandomBytes.make(count: 8).count == 8) }
      _ = RandomBytes.number()
      exit(EXIT_SUCCESS)
    }
    await #expect(processExitsWith: .success) {
      atexit { precondition(RunningDigest().finish().count == 32) }
      _ = RunningDigest()
      exit(EXIT_SUCCESS)
    }
    await #expect(processExitsWith: .success) {
      atexit { precondition(AES128GCM.sealsLate()) }
      _ = AES128GCM.sealsLate()
      exit(EXIT_SUCCESS)
    }
    await #expect(processExitsWith: .success) {
      atexit { precondition(HMACKey([1]).authenticationCode(UnsafeRawBufferPointer(start: nil, count: 0)).count == 32) }
      _ = HMACKey([1])
      exit(EXIT_SUCCESS)
    }
    await #expect(processExitsWith: .success) {
      atexit { precondition(P256KeyAgreement.generate().publicKey.count == 65) }
      _ = P256KeyAgreement(privateKey: [UInt8](repeating: 1, count: 32))
      exit(EXIT_SUCCESS)
    }
  }

  @Test func `OpenSSL works until the process is gone when librdkafka came first`() async {
    await #expect(processExitsWith: .success) {
      atexit { precondition(RunningDigest().finish().count == 32) }
      _ = try EmbeddedBroker()
      exit(EXIT_SUCCESS)
    }
  }

  @Test func `OpenSSL works until the process is gone when libcurl came first`() async {
    await #expect(processExitsWith: .success) {
      atexit { precondition(RunningDigest().finish().count == 32) }
      let loop = EventLoop(name: "curl")
      try await loop.run {
        HTTPClient(on: loop, configuration: HTTPClientConfiguration(hosts: try HTTPHostRule(["a.example"]))).close()
      }
      await loop.close()
      exit(EXIT_SUCCESS)
    }
  }
}

extension AES128GCM {
  fileprivate static func sealsLate() -> Bool {
    let key = [UInt8](repeating: 1, count: keyBytes).withUnsafeBytes { AES128GCM($0) }
    var sealed = [UInt8](repeating: 0, count: 3 + tagBytes)
    sealed.withUnsafeMutableBytes { sealed in
      [UInt8](repeating: 2, count: nonceBytes).withUnsafeBytes { nonce in
        ([1, 2, 3] as [UInt8]).withUnsafeBytes { key.seal($0, nonce: nonce, into: sealed) }
      }
    }
    return sealed.contains { $0 != 0 }
  }
}
