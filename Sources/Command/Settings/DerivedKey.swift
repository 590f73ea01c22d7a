import Cryptography

/// What is signed with a key of its own, derived from the cluster's, so that no kind of signature can stand for another.
enum DerivedKey: String {
  /// What devices return with a response.
  case receipts = "carillon receipt"
  /// Links to media.
  case media = "carillon media"

  /// The key. Without the cluster's the cluster's name has to do: any device may connect then anyway.
  func bytes(of key: [UInt8]?, cluster: String) -> [UInt8] {
    Array(rawValue.utf8).withUnsafeBytes { HMACKey(key ?? Array("development \(cluster)".utf8)).authenticationCode($0) }
  }
}
