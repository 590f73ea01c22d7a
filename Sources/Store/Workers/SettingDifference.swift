public import Notifications

/// A shared setting with different values among the workers' reports. A value.
public struct SettingDifference: Sendable, Hashable {
  /// The setting's key, as a configuration file names it.
  public let key: String
  /// Each value with the names of the workers that have it.
  let values: [Value]

  /// A value of a setting.
  public struct Value: Sendable, Hashable {
    /// The value in words.
    let value: String
    /// The workers that have it.
    let workers: [Name]
  }

  /// Finds the differences among workers, ordered by key. Silent workers do not count: they may have ended.
  public static func among(_ workers: [Workers.Listing]) -> [SettingDifference] {
    var found: [String: [String: [Name]]] = [:]
    for worker in workers where !worker.isSilent {
      for (key, value) in worker.report?.settings ?? [:] { found[key, default: [:]][value, default: []].append(worker.name) }
    }
    return found.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map { key, values in
      SettingDifference(
        key: key, values: values.sorted { $0.key < $1.key }.map { Value(value: $0.key, workers: $0.value.sorted()) })
    }
  }

  /// The difference in words: the setting, its values, and some workers of each.
  public var text: String {
    let parts = values.map { each in
      let more = each.workers.count - Self.namedWorkers
      return "\(each.value) at \(each.workers.prefix(Self.namedWorkers).map(\.text).joined(separator: ", "))"
        + (more > 0 ? " and \(more) more" : "")
    }
    return "\(key) differs between workers: \(parts.joined(separator: "; "))"
  }

  private static let namedWorkers = 3

  /// Whether a worker has the setting.
  public func concerns(_ worker: Name) -> Bool { values.contains { $0.workers.contains(worker) } }
}
