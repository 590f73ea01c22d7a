import JSON

/// What a page must know of the cluster: `device/config.json`, beside the notification center.
public struct WebConfiguration: Sendable {
  /// The device socket: a path of the page's own host, or a URL.
  public var devices: String
  /// Whether a device needs a credential.
  public var needsCredential: Bool
  /// The origin of links to media; nil if there is none.
  public var media: String?
  /// The environment that the cluster serves; nil if it is not known.
  public var environment: String?
  /// The origins of this host that may open the device socket; nil if they are not known.
  public var origins: [String]?

  /// Describes a cluster.
  ///
  /// - Parameter mediaBase: the base of links to media, which may have a path.
  public init(devices: String, needsCredential: Bool, mediaBase: String?, environment: String? = nil, origins: [String]? = nil) {
    (self.devices, self.needsCredential, self.environment, self.origins) = (devices, needsCredential, environment, origins)
    media = mediaBase.map { $0.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/") }
  }

  /// The file's text.
  ///
  /// - Parameter digest: of the files that the page is of.
  public func text(digest: String) -> String {
    var json: JSONValue = [
      "digest": .string(digest), "devices": .string(devices), "credential": .bool(needsCredential),
      "media": media.map { .string($0) } ?? .null,
    ]
    if let environment { json.set("environment", .string(environment)) }
    if let origins { json.set("origins", .array(origins.map { .string($0) })) }
    return json.text + "\n"
  }
}
