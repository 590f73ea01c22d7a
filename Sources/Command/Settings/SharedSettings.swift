import Cryptography
import Extensions
import Notifications
import Worker

/// The settings that should be the same in all workers. Each worker reports its own, and differences are logged.
///
/// Different buckets or names of the cluster would split a Redis, so the start refuses those instead.
enum SharedSettings {
  /// Those of the transform stage, as text.
  ///
  /// - Parameter extensions: the present ones, which change with their file.
  static func transform(_ values: SettingValues, _ extensions: InForce<ExtensionsFile>) -> @Sendable () -> [String: String] {
    let numbers = [
      RequestSettings.payloadBytes, TransformOptions.tries, TransformOptions.mailbox, TransformOptions.connectedMailbox,
      TransformOptions.rememberedIDs, TransformOptions.rememberedRevisions, TransformOptions.scheduled,
    ]
    let texts = shared(values, numbers, [TransformOptions.late]).with(TransformOptions.group, values[TransformOptions.group])
    return { texts.with(TransformOptions.extensions, extensions.value.digest ?? "none") }
  }

  /// Those of the fan-out stage, as text.
  ///
  /// - Parameter keys: the cluster's, which change with their file; nil if any device may connect.
  static func fanOut(_ values: SettingValues, keys: InForce<KeyRing>?) -> @Sendable () -> [String: String] {
    let texts = shared(values, [], [FanOutOptions.silence])
      .with(FanOutOptions.environment, FanOutOptions.servedEnvironment(values, hasKey: keys != nil).rawValue)
    return { texts.with(FanOutOptions.keyFile, ids(keys?.value.keys.map(\.id))) }
  }

  /// Those of the ingress, as text.
  ///
  /// - Parameter keys: the publishers', which change with their files; nil if any program may publish.
  static func ingress(_ values: SettingValues, keys: InForce<[SignatureKey]>?) -> @Sendable () -> [String: String] {
    let texts = shared(values, [RequestSettings.payloadBytes], [])
    return { texts.with(IngressOptions.keyFiles, ids(keys?.value.map(\.id))) }
  }

  private static func ids(_ keys: [String]?) -> String { keys?.joined(separator: ", ") ?? "none" }

  /// Numbers and durations of a stage, and those of all stages.
  private static func shared(_ values: SettingValues, _ numbers: [Setting<Int>], _ durations: [Setting<Duration>]) -> [String: String] {
    let counts = numbers.map { ($0.declaration.key, "\(values[$0])") }
    let times = ([RequestSettings.longestLifetime, RequestSettings.oneAttempt] + durations).map {
      ($0.declaration.key, "\(values[$0].wholeMilliseconds / 1000) s")
    }
    return Dictionary(uniqueKeysWithValues: counts + times)
  }
}

extension [String: String] {
  fileprivate func with<Shared>(_ setting: Setting<Shared>, _ text: String) -> [String: String] {
    merging([setting.declaration.key: text]) { first, _ in first }
  }
}
