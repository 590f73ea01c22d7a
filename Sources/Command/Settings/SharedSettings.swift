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
  /// - Parameter extensions: the present ones, which change with SIGHUP.
  static func transform(_ values: SettingValues, _ extensions: InForce<ExtensionsFile>) -> @Sendable () -> [String: String] {
    let fixed = requests(values).merging([
      RequestSettings.payloadBytes.declaration.key: "\(values[RequestSettings.payloadBytes])",
      TransformOptions.tries.declaration.key: "\(values[TransformOptions.tries])",
      TransformOptions.mailbox.declaration.key: "\(values[TransformOptions.mailbox])",
      TransformOptions.connectedMailbox.declaration.key: "\(values[TransformOptions.connectedMailbox])",
      TransformOptions.rememberedIDs.declaration.key: "\(values[TransformOptions.rememberedIDs])",
      TransformOptions.rememberedRevisions.declaration.key: "\(values[TransformOptions.rememberedRevisions])",
      TransformOptions.late.declaration.key: seconds(values[TransformOptions.late]),
      TransformOptions.scheduled.declaration.key: "\(values[TransformOptions.scheduled])",
      TransformOptions.group.declaration.key: values[TransformOptions.group],
    ]) { first, _ in first }
    return {
      fixed.merging([TransformOptions.extensions.declaration.key: extensions.value.digest ?? "none"]) { first, _ in first }
    }
  }

  /// Those of the fan-out stage, as text.
  ///
  /// - Parameter keys: the cluster's, which change with their file; nil if any device may connect.
  static func fanOut(_ values: SettingValues, keys: InForce<KeyRing>?) -> @Sendable () -> [String: String] {
    let fixed = requests(values).merging([
      FanOutOptions.silence.declaration.key: seconds(values[FanOutOptions.silence]),
      FanOutOptions.environment.declaration.key: FanOutOptions.servedEnvironment(values, hasKey: keys != nil).rawValue,
    ]) { first, _ in first }
    return { fixed.merging([FanOutOptions.keyFile.declaration.key: ids(keys?.value.keys.map(\.id))]) { first, _ in first } }
  }

  /// Those of the ingress, as text.
  ///
  /// - Parameter keys: the publishers', which change with their files; nil if any program may publish.
  static func ingress(_ values: SettingValues, keys: InForce<[SignatureKey]>?) -> @Sendable () -> [String: String] {
    let fixed = requests(values).merging([
      RequestSettings.payloadBytes.declaration.key: "\(values[RequestSettings.payloadBytes])"
    ]) { first, _ in first }
    return { fixed.merging([IngressOptions.keyFiles.declaration.key: ids(keys?.value.map(\.id))]) { first, _ in first } }
  }

  private static func ids(_ keys: [String]?) -> String { keys?.joined(separator: ", ") ?? "none" }

  private static func requests(_ values: SettingValues) -> [String: String] {
    [
      RequestSettings.longestLifetime.declaration.key: seconds(values[RequestSettings.longestLifetime]),
      RequestSettings.oneAttempt.declaration.key: seconds(values[RequestSettings.oneAttempt]),
    ]
  }

  private static func seconds(_ duration: Duration) -> String { "\(duration.wholeMilliseconds / 1000) s" }
}
