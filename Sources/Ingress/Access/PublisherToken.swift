package import Cryptography
import JSON
package import Notifications
import Worker

/// What a publisher may do, as its token says: the claims of a JSON Web Token (RFC 7519). The article Ingress.md lists them.
package struct PublisherToken: Sendable, Equatable {
  /// A kind of target.
  package enum TargetKind: String, Sendable, CaseIterable {
    /// All devices of a person.
    case user
    /// One device.
    case device
  }

  /// An operation, by the word of the header `operation`.
  package typealias Operation = RequestView.Operation

  /// Nil for all.
  let applications: Set<Name>?
  let targets: Set<TargetKind>
  let operations: Set<Operation>
  /// The name in the access log.
  let publisher: Name?
  /// When its validity begins and ends, in seconds since 1970.
  private(set) var notBefore: Int64?
  let expiration: Int64

  private static let all: Name = "*"

  /// Makes a token of its claims.
  ///
  /// - Parameters:
  ///   - applications: `*` among them means all.
  ///   - publisher: the name in the access log.
  ///   - expiration: when its validity ends, in seconds since 1970.
  package init(
    applications: [Name], targets: [TargetKind] = TargetKind.allCases, operations: [Operation] = Operation.allCases, publisher: Name?,
    expiration: Int64
  ) {
    self.applications = applications.contains(Self.all) ? nil : Set(applications)
    (self.targets, self.operations) = (Set(targets), Set(operations))
    (self.publisher, self.expiration) = (publisher, expiration)
  }

  /// Reads the claims of a token that is genuine. An unknown word is an error, since it may be a misspelt restriction.
  init(_ claims: SignedToken) throws(SignedToken.ClaimError) {
    guard claims.isForPublishers else { throw .init("aud", "must be \(SignedToken.publishers)") }
    guard let applications = try claims.texts("apps"), !applications.isEmpty else {
      throw .init("apps", "is missing: it must be an array of applications")
    }
    guard let expiration = try claims.seconds("exp", .down) else { throw .init("exp", "is missing: it must be when it expires") }
    self.init(
      applications: applications.map { Name($0) }, targets: try Self.words(claims, "targets"),
      operations: try Self.words(claims, "operations"), publisher: try claims.text("sub").map { Name($0) }, expiration: expiration)
    notBefore = try claims.seconds("nbf", .up)
  }

  private static func words<Word: RawRepresentable<String> & CaseIterable>(_ claims: SignedToken, _ name: String)
    throws(SignedToken.ClaimError) -> [Word]
  {
    guard let texts = try claims.texts(name) else { return Array(Word.allCases) }
    let words = texts.compactMap { Word(rawValue: $0) }
    guard words.count == texts.count, !words.isEmpty else {
      throw .init(name, "must be an array of some of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return words
  }

  /// The token, signed with a shared secret at `now` (seconds since 1970).
  package func sign(key: KeyRing.Key, now: Int64) -> String {
    func array(_ words: [String]) -> JSONValue { .array(words.sorted().map { .string($0) }) }
    let claims = JSONValue.object(present: [
      "aud": SignedToken.publishers, "apps": array(applications?.map(\.text) ?? [Self.all.text]),
      "targets": array(targets.map(\.rawValue)), "operations": array(operations.map(\.rawValue)), "sub": publisher, "iat": now,
      "exp": expiration,
    ])
    return Array(claims.text.utf8).withUnsafeBytes { CompactSignature.sign($0, with: key) }
  }

  func allows(_ application: Name) -> Bool { applications?.contains(application) ?? true }
}
