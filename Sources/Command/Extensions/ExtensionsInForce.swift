import Cryptography
import Extensions
import Notifications
import Worker

/// The extensions of a transform process, which its lanes share.
struct ExtensionsInForce: Sendable {
  let source: InForce<ExtensionsFile>
  /// The file, which is read again when it changes; nil if there is none.
  let files: WatchedFiles?
  /// Nil if the process has none.
  private let media: MediaStore?

  /// Reads the file of the settings; empty if they name none.
  ///
  /// - Parameter metrics: shows the metrics of the media folder; nil for a tool.
  init(_ values: SettingValues, _ logger: Logger, _ metrics: MetricRegistry? = nil) async throws {
    let media = try await MediaOptions.store(values, logger.with(component: "media"), metrics)
    self.media = media
    guard let path = values[TransformOptions.extensions] else {
      (source, files) = (InForce(ExtensionsFile()), nil)
      return
    }
    let logger = logger.with(component: "extensions")
    do {
      // The file is read again outside of the tasks that know the own extensions.
      (source, files) = try WatchedFiles.reading("extensions", [path], logger) { [own = Program.extensions] in
        try values.naming(TransformOptions.extensions) { () throws(Failure) in try Self.inForce(path, own, media) }
      } inForce: { extensions in
        logger.info("the extensions' file is in force", ["file": path, "applications": extensions.all.count])
      }
    } catch {
      await media?.close()
      throw error
    }
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
  private static func inForce(_ path: String, _ own: [OwnExtension], _ media: MediaStore?) throws(Failure) -> ExtensionsFile {
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
}
