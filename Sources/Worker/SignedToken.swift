public import Cryptography
import JSON
import Notifications

/// The claims of a JSON Web Token (RFC 7519) whose signature is genuine.
///
/// A claim of a wrong type is an error. To ignore it could allow more than the signer meant.
public struct SignedToken: Sendable {
  /// The claim `aud` of a publisher's token. A device's credential never has it.
  public static let publishers = "carillon-publish"

  private let claims: JSONValue
  /// The id of the key that has signed it.
  public let keyID: String

  /// A claim that breaks its rule.
  public struct ClaimError: Error, Equatable {
    /// The claim's name.
    public let name: String
    /// Its rule, as the end of a sentence: `must be a string`.
    public let rule: String

    /// Makes an error of one claim.
    public init(_ name: String, _ rule: String) { (self.name, self.rule) = (name, rule) }
  }

  /// Reads a token that one of these keys has signed; nil for any other text.
  ///
  /// Libraries write the header in any order, with or without `typ` and `kid`, which decides nothing. It must name the key's algorithm and no
  /// extension (RFC 7515, section 4.1.11). The key decides the algorithm, and the header is read only after the signature was verified.
  public init?(verifying text: String, with keys: [SignatureKey]) {
    let genuine = CompactSignature.verify(text, with: keys) { header, key in
      guard let header = Self.object(header) else { return false }
      return header["alg"] == .string(key.algorithm.rawValue) && header["crit"] == nil
    }
    guard let genuine, let claims = Self.object(genuine.payload) else { return nil }
    (self.claims, keyID) = (claims, genuine.key.id)
  }

  /// An object whose members differ byte by byte. Readers do not agree on which of two equal members counts.
  private static func object(_ bytes: [UInt8]) -> JSONValue? {
    guard let value = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), let members = value.members,
      Set(members.map { Name($0.key) }).count == members.count
    else { return nil }
    return value
  }

  /// Whether the claim stands, and is not null.
  public func has(_ name: String) -> Bool { claims[name].map { $0 != .null } ?? false }

  /// A claim that is a text; nil if it is absent.
  public func text(_ name: String) throws(ClaimError) -> String? {
    guard let value = claims[name] else { return nil }
    guard let text = value.stringValue else { throw ClaimError(name, "must be a string") }
    return text
  }

  /// A claim that is an array of texts, or one text; nil if it is absent.
  public func texts(_ name: String) throws(ClaimError) -> [String]? {
    guard let value = claims[name] else { return nil }
    if let text = value.stringValue { return [text] }
    guard case .array(let elements) = value else { throw ClaimError(name, "must be an array of strings") }
    let texts = elements.compactMap(\.stringValue)
    guard texts.count == elements.count else { throw ClaimError(name, "must be an array of strings") }
    return texts
  }

  /// A claim that is a time, in seconds since 1970; nil if it is absent. A fraction is rounded.
  public func seconds(_ name: String, _ rounding: FloatingPointRoundingRule) throws(ClaimError) -> Int64? {
    guard let value = claims[name] else { return nil }
    if let seconds = value.integerValue { return seconds }
    guard let seconds = value.doubleValue.flatMap({ Int64(exactly: $0.rounded(rounding)) }) else {
      throw ClaimError(name, "must be a number of seconds since 1970")
    }
    return seconds
  }

  /// Whether it is a publisher's token, and so no device's credential.
  public var isForPublishers: Bool { (try? texts("aud"))??.contains { Name($0) == Name(Self.publishers) } ?? false }
}
