import Cryptography
import EventLoop
import Extensions
import FanOut
import HTTP
import Worker

/// The settings of notifications' media.
enum MediaOptions {
  static let folder = Setting<String?>(
    "media.folder", flag: "media", .folder,
    "The folder for media that the extension attach has fetched, which all workers of the cluster share. Absent: no media.")
  static let bytes = Setting(
    "media.bytes", flag: "media-bytes", .size((1 << 20)...(1 << 50)), default: 10 << 30,
    "Maximum bytes of all media, as far as a worker knows. At the limit no more media are attached until some have expired."
  )
  static let listen = Setting(
    "media.listen", flag: "media-listen", .address, default: SocketAddress(host: "127.0.0.1", port: 7173),
    "Where devices fetch media by HTTP, with --media; port 0 takes a free one, which the log and the links show.")
  static let url = Setting<String?>(
    "media.url", flag: "media-url", .base,
    "The base of links to media: the proxy with TLS in front of --media-listen. Absent: http:// or https://, and the address of --media-listen."
  )
  static let link = Setting(
    "media.link", flag: "media-link", .duration(.seconds(60)...(.seconds(604_800))), default: .seconds(3600),
    "How long a link to a file is valid; a device asks for another by the frame link.")

  /// For processes that store media.
  static let keeping = SettingGroup("Media", [folder], advanced: [bytes])
  /// For processes that serve media.
  static let serving = SettingGroup("Media", [folder, url], advanced: [listen, link])
  /// For processes that do both.
  static let group = SettingGroup("Media", [folder, url], advanced: [bytes, listen, link])

  /// The media store of a process; nil if it has none.
  static func store(_ values: SettingValues, _ logger: Logger? = nil, _ metrics: MetricRegistry? = nil) async throws(Failure) -> MediaStore?
  {
    guard let folder = values[folder] else { return nil }
    let (bytes, files) = (metrics?.make(MetricNames.mediaStoredBytes), metrics?.make(MetricNames.mediaStoredFiles))
    do throws(MediaError) {
      return try await MediaStore.open(MediaFolder(folder), limit: values[Self.bytes], isKeeper: metrics != nil) { report in
        switch report {
        case .stored(let storedBytes, let storedFiles):
          bytes?.set(Double(storedBytes))
          files?.set(Double(storedFiles))
        case .failed(let error): logger?.warning("the media folder cannot be searched", ["error": "\(error)"])
        }
      }
    } catch { throw Failure(.dependencyMissing, "--media: \(error)") }
  }

  /// The media server of a process and the maker of its links; nil if it has none.
  ///
  /// - Parameters:
  ///   - address: where it listens.
  ///   - keys: the cluster's; nil accepts any device.
  ///   - cluster: the cluster's name.
  static func serve(
    _ values: SettingValues, at address: SocketAddress, keys: InForce<KeyRing>?, cluster: String, of process: RoleProcess
  ) async throws(EventLoopError) -> (server: LoopServer, links: MediaLinkSettings)? {
    guard let folder = values[folder] else { return nil }
    let server = try await MediaServer.start(
      at: address, MediaFolder(folder), keys: keys ?? FanOutOptions.developmentKeys(cluster: cluster),
      maximumDescriptor: process.descriptors.maximum, tls: process.tls?.server(), logger: process.logger, metrics: process.metrics)
    // It may exist later.
    do throws(MediaError) { try MediaFolder(folder).check() } catch {
      process.logger.warning("devices get no media until this is fixed", ["error": "\(error)"])
    }
    let place = await server.address
    let base = values[url] ?? "http\(process.tls == nil ? "" : "s")://\(Machine.reachable(place))"
    process.logger.info("devices may fetch media", ["address": "\(place)", "links": base])
    return (server, MediaLinkSettings(base: base, seconds: Int64(values[link].wholeMilliseconds / 1000)))
  }
}

extension SettingKind where Value == String {
  /// The base of a server's URLs.
  static var base: SettingKind {
    SettingKind(
      placeholder: "URL", allowed: "http:// or https://, a host, and optionally a path, without a slash at the end",
      read: { text in
        guard let url = try? HTTPURL(text), !url.scheme.isWebSocket, text.utf8.count <= 512 else { return nil }
        return text.hasSuffix("/") || text.contains("?") || text.contains("#") ? nil : text
      })
  }
}
