import Cryptography
import EventLoop
import Extensions
import Notifications
import Worker

/// The extensions of a transform process, which its lanes share and SIGHUP reloads.
struct ExtensionsInForce: Sendable {
  let source: InForce<ExtensionsFile>
  private let path: String?
  /// Nil if the process has none.
  private let media: MediaStore?
  private let logger: Logger
  /// The thread that reloads the file, which no lane waits for.
  private let thread: EventLoop?
  /// 1 while the file cannot be used.
  private let isRefused: Gauge?

  /// Reads the file of the settings; empty if they name none.
  ///
  /// - Parameter metrics: shows the metrics of the media folder and of the file; nil for a tool.
  init(_ values: SettingValues, _ logger: Logger, _ metrics: MetricRegistry? = nil) async throws(Failure) {
    let media = try await MediaOptions.store(values, logger.with(component: "media"), metrics)
    self.media = media
    path = values[TransformOptions.extensions]
    do throws(Failure) {
      source = InForce(
        try path.map { path throws(Failure) in
          try values.naming(TransformOptions.extensions) { () throws(Failure) in try Self.inForce(path, media) }
        } ?? ExtensionsFile())
    } catch {
      await media?.close()
      throw error
    }
    thread = path.map { _ in EventLoop(name: "extensions") }
    isRefused = path == nil ? nil : metrics?.make(MetricNames.refusedFiles, "extensions")
    self.logger = logger.with(component: "extensions")
  }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - place: where the extensions run.
  ///   - own: extensions beside the built-in ones.
  ///   - media: the store of attachments. Without it extensions that attach fail.
  /// - Throws: the first error, with the file's name, its place and the rule.
  static func read(
    _ path: String, at place: ExtensionsFile.Place = .workers, own: [OwnExtension] = Program.extensions, media: MediaStore? = nil
  ) throws(Failure) -> ExtensionsFile {
    do throws(FieldError) {
      return try ExtensionsFile(path: path, at: place, own: own, media: media)
    } catch {
      throw Failure(.wrongUsage, "\(error)")
    }
  }

  /// Reads a file for workers, and checks that its resources exist.
  private static func inForce(_ path: String, _ media: MediaStore?, own: [OwnExtension] = Program.extensions) throws(Failure)
    -> ExtensionsFile
  {
    let extensions = try read(path, own: own, media: media)
    guard media != nil || !extensions.usesMedia else {
      throw Failure(.wrongUsage, "\(path): the extension attach needs a folder for its files: give --media FOLDER")
    }
    return extensions
  }

  /// Releases the extensions' resources after the lanes have ended. A hanging folder does not delay the process.
  func close() async {
    if let media { await Task { await media.close() }.value(by: .now + .seconds(2)) }
  }

  /// Reloads the file; nil if there is none. An error is logged and changes nothing.
  var reload: (@Sendable () -> Void)? {
    guard let path, let thread else { return nil }
    return { [source, logger, media, isRefused, own = Program.extensions] in
      thread.execute {
        do throws(Failure) {
          let extensions = try Self.inForce(path, media, own: own)
          source.replace(with: extensions)
          isRefused?.set(0)
          logger.info("the extensions' file is in force", ["file": path, "applications": extensions.all.count])
        } catch {
          isRefused?.set(1)
          logger.error("the extensions' file is wrong; the former one stays in force", ["error": "\(error)"])
        }
      }
    }
  }
}
