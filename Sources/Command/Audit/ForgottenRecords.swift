/// What the tools say when the embedded broker no longer has the oldest records.
enum ForgottenRecords {
  /// The sentence for so many of them; nil for none.
  static func sentence(_ count: Int64) -> String? {
    guard count > 0 else { return nil }
    return "the embedded broker keeps 5 MiB of each partition: the oldest \(TerminalText.count(Int(count), "record")) of requests, "
      + "the journal and events are gone, and nothing is said of requests from before then"
  }
}
