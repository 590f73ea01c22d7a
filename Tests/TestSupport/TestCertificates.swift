import Foundation
import Testing

/// Certificates for tests of TLS, made by `openssl` once in a process. Each pair is in PEM.
public struct TestCertificates: Sendable {
  /// A certificate and its key.
  public typealias Pair = (certificate: String, key: String)

  /// The authority that has signed all of them.
  public let authority: String
  /// For `localhost`, `good.test` and 127.0.0.1.
  public let good: Pair
  /// Another one for the same names.
  public let next: Pair
  /// For `other.test`.
  public let other: Pair
  /// Expired yesterday.
  public let expired: Pair

  /// Those of this process.
  public static let shared = Task { try await make() }

  /// `openssl`.
  public static let program = "/usr/bin/openssl"

  private static let script = """
    set -e
    ec='-nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256'
    openssl req -x509 $ec -days 2 -subj '/CN=Test CA' -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem
    leaf() {
      openssl req $ec -subj /CN=$1 -keyout $1.key -out $1.csr
      printf "subjectAltName=$2" > $1.ext
      openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days $3 -extfile $1.ext -out $1.pem
    }
    leaf good DNS:localhost,DNS:good.test,IP:127.0.0.1 2
    leaf next DNS:localhost,DNS:good.test,IP:127.0.0.1 2
    leaf other DNS:other.test 2
    leaf expired DNS:localhost,IP:127.0.0.1 -1
    """

  private static func make() async throws -> TestCertificates {
    try await TestFolder.with { folder in
      let made = try SpawnedProcess(
        URL(fileURLWithPath: "/bin/sh"), ["-c", "cd '\(folder.path)'\n" + script], environment: ["PATH": "/usr/bin:/bin"],
        streams: [
          .closed, .file(URL(fileURLWithPath: "/dev/null"), flags: O_WRONLY), .file(URL(fileURLWithPath: "/dev/null"), flags: O_WRONLY),
        ])
      await eventually("the certificates are made") { made.status != nil }
      func text(_ name: String) throws -> String { try String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8) }
      func pair(_ name: String) throws -> Pair { (try text("\(name).pem"), try text("\(name).key")) }
      return TestCertificates(
        authority: try text("ca.pem"), good: try pair("good"), next: try pair("next"), other: try pair("other"),
        expired: try pair("expired"))
    }
  }
}
