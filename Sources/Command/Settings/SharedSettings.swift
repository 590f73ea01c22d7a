import Cryptography
import Extensions
import Notifications
import Worker

/// The settings that should be the same in all workers that have them: each worker reports its own, and differences are told.
///
/// What a Redis would be split by, the buckets and the cluster's name, is refused at the start instead.
enum SharedSettings {
  /// Those of the transform stage, in words.
  ///
  /// - Parameter extensions: those in force, which change with SIGHUP.
  static func transform(_ values: SettingValues, _ extensions: ExtensionsSource) -> @Sendable () -> [String: String] {
    let fixed = requests(values).merging([
      RequestSettings.payloadBytes.declaration.key: "\(values[RequestSettings.payloadBytes])",
      TransformOptions.tries.declaration.key: "\(values[TransformOptions.tries])",
      TransformOptions.mailbox.declaration.key: "\(values[TransformOptions.mailbox])",
      TransformOptions.rememberedIDs.declaration.key: "\(values[TransformOptions.rememberedIDs])",
      TransformOptions.rememberedRevisions.declaration.key: "\(values[TransformOptions.rememberedRevisions])",
      TransformOptions.group.declaration.key: values[TransformOptions.group],
    ]) { first, _ in first }
    return {
      fixed.merging([TransformOptions.extensions.declaration.key: extensions.current.extensions.digest ?? "none"]) { first, _ in first }
    }
  }

  /// Those of the fan-out stage, in words.
  ///
  /// - Parameter key: the cluster's; nil: any device may connect.
  static func fanOut(_ values: SettingValues, key: [UInt8]?) -> @Sendable () -> [String: String] {
    let fixed = requests(values).merging([
      FanOutOptions.silence.declaration.key: seconds(values[FanOutOptions.silence]),
      FanOutOptions.keyFile.declaration.key: fingerprint(of: key),
    ]) { first, _ in first }
    return { fixed }
  }

  private static func requests(_ values: SettingValues) -> [String: String] {
    [
      RequestSettings.longestLifetime.declaration.key: seconds(values[RequestSettings.longestLifetime]),
      RequestSettings.oneAttempt.declaration.key: seconds(values[RequestSettings.oneAttempt]),
    ]
  }

  private static func seconds(_ duration: Duration) -> String { "\(duration.wholeMilliseconds / 1000) s" }

  /// Tells keys apart, and says nothing of the key: some bytes of a code that only it gives.
  private static func fingerprint(of key: [UInt8]?) -> String {
    guard let key else { return "none" }
    let code = Array("carillon fingerprint".utf8).withUnsafeBytes { HMACKey(key).authenticationCode($0) }
    return Hexadecimal.text(Array(code.prefix(4)))
  }
}
