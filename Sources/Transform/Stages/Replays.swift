import Notifications

extension RequestEnvelope {
  /// Whether a request is a replay of one that was applied, so that all it came to is durable.
  ///
  /// An origin that counts names the partition of its record, so the lane that reads the record owns the marker.
  ///
  /// - Parameter marker: the offset below which everything of the partition is applied.
  func repeatsWhatWasApplied(below marker: Int64) -> Bool {
    guard let origin, origin.purpose == .replay else { return false }
    return origin.position.offset < marker
  }
}
