import EventLoop
import Foundation
import TestSupport
import Testing

@testable import HTTP

private let openssl = "/usr/bin/openssl"

/// `openssl s_server` with a certificate of its own for `good.test`.
private actor TLSServer: LoopActor {
  nonisolated let loop = EventLoop(name: "tls-server")
  nonisolated let certificateFile: String
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-tls-\(UUID().uuidString)")
  private var server: ChildProcess?

  init() { certificateFile = folder.appendingPathComponent("certificate.pem").path }

  /// Starts the server, which listens soon.
  func start(port: Int, _ options: [String]) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let key = folder.appendingPathComponent("key.pem").path
    let made = await withCheckedContinuation { (continuation: CheckedContinuation<ChildExit?, Never>) in
      let arguments =
        ["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=good.test"]
        + ["-addext", "subjectAltName=DNS:good.test", "-keyout", key, "-out", certificateFile]
      do {
        _ = try ChildProcess.spawn(on: loop, executable: openssl, arguments: arguments, output: .discarded) {
          continuation.resume(returning: $0)
        }
      } catch { continuation.resume(returning: nil) }
    }
    try #require(made == .exited(0))
    let arguments = ["s_server", "-www", "-accept", "127.0.0.1:\(port)", "-cert", certificateFile, "-key", key] + options
    server = try ChildProcess.spawn(on: loop, executable: openssl, arguments: arguments, output: .discarded) { _ in }
  }

  func stop() {
    server?.kill(SIGKILL)
    try? FileManager.default.removeItem(at: folder)
  }
}

@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: openssl), "openssl is not installed"))
struct HTTPClientTLSTests {
  /// What a request to a server with these options comes to, once the server listens.
  private func result(
    host: String = "good.test", options: [String] = [], trusted: (TLSServer) -> String?
  ) async throws -> Result<HTTPClientResponse, HTTPClientError> {
    let server = TLSServer()
    let port = try await freePort(on: server.loop)
    try await server.start(port: port, options)
    var configuration = try HTTPClientLane.local("\(host):\(port)")
    configuration.schemes = [.https]
    configuration.pinned = [pinned(host, port, ["127.0.0.1"])]
    configuration.certificateFile = trusted(server)
    let lane = HTTPClientLane()
    await lane.open(configuration)
    var result = Result<HTTPClientResponse, HTTPClientError>.failure(HTTPClientError(.connectFailed, "not tried"))
    await eventually("the server listens") {
      result = await lane.send(patient(.get, "https://\(host):\(port)/"))
      return result.code != .connectFailed
    }
    await lane.close()
    await lane.loop.close()
    await server.stop()
    await server.loop.close()
    return result
  }

  @Test func aTrustedCertificateForTheHostIsTaken() async throws {
    let result = try await result { $0.certificateFile }
    #expect(result.status == 200, "\(result)")
    #expect(result.text?.contains("s_server") == true)
  }

  @Test func anUntrustedCertificateIsRefused() async throws {
    let result = try await result { _ in nil }
    #expect(result.code == .tlsFailed, "\(result)")
    if case .failure(let error) = result { #expect(error.message.contains("certificate") && error.message.contains("good.test")) }
  }

  @Test func aCertificateForAnotherHostIsRefused() async throws {
    let result = try await result(host: "other.test") { $0.certificateFile }
    #expect(result.code == .tlsFailed, "\(result)")
  }

  @Test func versionsBefore1_2AreRefused() async throws {
    #expect(try await result(options: ["-tls1_2"]) { $0.certificateFile }.status == 200)
    let result = try await result(options: ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]) { $0.certificateFile }
    #expect(result.code == .tlsFailed, "\(result)")
  }

  @Test func aCertificateFileThatIsMissingFailsTheRequest() async throws {
    let result = try await result { $0.certificateFile + ".missing" }
    #expect(result.code == .tlsFailed, "\(result)")
  }
}
