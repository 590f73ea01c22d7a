import Notifications
import Operations
import Worker

/// What the cluster accepts. It is the same for every role, and for the tools that check beforehand.
enum RequestSettings {
  static let payloadBytes = Setting(
    "requests.payload-bytes", .size(256...32_768), default: RequestLimits().payloadBytes,
    "The largest payload. The same everywhere in the cluster; VoIP pushes may have 5120 bytes in any case.")
  static let longestLifetime = Setting(
    "requests.longest-lifetime", .duration(.seconds(60)...(.seconds(30 * 86_400))), default: .seconds(RequestLimits().longestLifetime),
    "The longest lifetime of a notification: a later expiration is cut to it, and devices keep ids and revisions for this time.")
  static let oneAttempt = Setting(
    "requests.one-attempt", .duration(.seconds(1)...(.seconds(3600))),
    default: .seconds(ExpirationRule.oneAttemptSeconds),
    "How long after its publication a request with apns-expiration 0 may still be tried.")

  static let group = SettingGroup("Requests", [], advanced: [payloadBytes, longestLifetime, oneAttempt])
}

extension RequestLimits {
  /// Reads the settings of a cluster's workers about payloads.
  init(_ values: SettingValues) {
    let payload = values[RequestSettings.payloadBytes]
    self.init(payloadBytes: payload, voipPayloadBytes: max(payload, RequestLimits().voipPayloadBytes))
  }
}

extension RequestRules {
  /// Reads the settings of a cluster's workers.
  ///
  /// - Parameter topics: the cluster's topics; nil for those of the settings.
  init(_ values: SettingValues, topics: Topics? = nil) {
    var limits = RequestLimits(values)
    limits.longestLifetime = Int64(values[RequestSettings.longestLifetime].wholeMilliseconds / 1000)
    self.init(
      topics: topics ?? ClusterSettings.topics(values), limits: limits,
      oneAttemptSeconds: Int64(values[RequestSettings.oneAttempt].wholeMilliseconds / 1000))
  }
}
