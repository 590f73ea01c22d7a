/// The message that the embedded broker has dropped old records.
enum ForgottenRecords {
  /// The sentence for this many records; nil for none.
  static func sentence(_ count: Int64) -> String? {
    guard count > 0 else { return nil }
    return "the embedded broker keeps 5 MiB of each partition: the oldest \(TerminalText.count(Int(count), "record")) of requests, "
      + "the journal and events are gone, so older requests are missing here"
  }
}
