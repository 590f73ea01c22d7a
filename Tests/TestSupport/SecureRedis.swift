import EventLoop
public import Redis

/// Lends a server that also takes TLS, and its address there. The test trusts the authority of `TestCertificates`.
///
/// - Parameters:
///   - pair: the server's certificate and key.
///   - asksClients: whether clients need a certificate, too.
///   - body: gets also a folder with `ca.pem`, the authority's certificate.
public func withSecureRedis<R>(
  _ pair: TestCertificates.Pair? = nil, asksClients: Bool = false,
  _ body: (_ server: PrivateServer, _ secure: RedisAddress, _ folder: TestFolder) async throws -> R
) async throws -> R {
  let certificates = try await TestCertificates.shared.value
  let pair = pair ?? certificates.good
  let loop = EventLoop(name: "port")
  let port = try await freePort(on: loop)
  await loop.close()
  return try await TestFolder.with { folder in
    let settings = [
      "--tls-port", "\(port)", "--tls-auth-clients", asksClients ? "yes" : "no",
      "--tls-cert-file", try folder.write("server.pem", pair.certificate), "--tls-key-file", try folder.write("server.key", pair.key),
      "--tls-ca-cert-file", try folder.write("ca.pem", certificates.authority),
    ]
    return try await withRedis(listening: .port(nil), settings: settings) { server in
      let tls = RedisTLS(authorities: Array(certificates.authority.utf8))
      return try await body(server, RedisAddress(.tcp(host: "127.0.0.1", port: port), tls: tls), folder)
    }
  }
}
