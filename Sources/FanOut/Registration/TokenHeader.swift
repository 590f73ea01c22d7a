import JSON

/// The header of a signed token, as libraries write it (RFC 7515): in any order, with spaces, with or without `typ` and `kid`.
enum TokenHeader {
  /// Whether a token with this header is a credential: its algorithm is the cluster's own, and the header names no extension.
  ///
  /// The token never chooses the algorithm: its code was compared before the header is read.
  static func isAccepted(_ header: [UInt8]) -> Bool {
    guard let header = try? header.withUnsafeBytes({ try JSONValue(parsing: $0) }), header.hasUniqueMembers,
      header["alg"] == .string("HS256")
    else { return false }
    // An extension that must be understood, and is not (RFC 7515, section 4.1.11).
    return header["crit"] == nil
  }
}

extension JSONValue {
  /// Whether it is an object whose names differ byte by byte: readers do not agree on which of two members counts.
  var hasUniqueMembers: Bool {
    guard let members else { return false }
    return Set(members.map { Array($0.key.utf8) }).count == members.count
  }
}
