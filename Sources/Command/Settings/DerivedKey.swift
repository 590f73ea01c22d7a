import Cryptography

/// Keys that derive from the cluster's key, one for each kind of signature, so that kinds cannot be confused.
enum DerivedKey: String {
  /// For the receipts that devices return with a response.
  case receipts = "carillon receipt"
  /// For links to media.
  case media = "carillon media"
  /// For the tickets of TLS sessions. Without the cluster's key it must not be used: everybody would know it.
  case tickets = "carillon tickets"

  /// The key. Without the cluster's key it derives from the cluster's name: any device may connect then anyway.
  func bytes(of key: [UInt8]?, cluster: String) -> [UInt8] {
    Array(rawValue.utf8).withUnsafeBytes { HMACKey(key ?? Array("development \(cluster)".utf8)).authenticationCode($0) }
  }
}
