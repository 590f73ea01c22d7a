/// The message that the embedded broker has dropped old records.
enum ForgottenRecords {
  /// The sentence for this many records; nil for none.
  static func sentence(_ count: Int64) -> String? {
    guard count > 0 else { return nil }
    return "the embedded broker keeps 5 MiB of each partition: the oldest \(TerminalText.count(Int(count), "record")) of requests, "
      + "the journal and events are gone, so older requests are missing here"
  }

  /// The message of a search that has found nothing.
  static func nothing(about subject: String, forgotten count: Int64) -> String {
    "there is nothing about \(subject)\(count > 0 ? ", unless it is among the records that are gone" : ""); searched:"
  }
}
