import Redis

extension Shards {
  /// Reads the processor time that the server has used since it started, in seconds; nil if it does not say.
  public func processorSeconds() async throws(StoreError) -> Double? {
    guard let text = try await common.answer("INFO", "cpu").text else { return nil }
    let fields = ["used_cpu_sys:", "used_cpu_user:"].map { field in
      text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(field) }.flatMap { Double($0.dropFirst(field.utf8.count)) }
    }
    guard let system = fields[0], let user = fields[1], (system + user).isFinite else { return nil }
    return system + user
  }
}
