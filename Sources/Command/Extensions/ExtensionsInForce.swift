import EventLoop
import Extensions
import Notifications
import Worker

/// The extensions of a process of the transform stage, which its lanes share, and which SIGHUP brings up to date.
struct ExtensionsInForce: Sendable {
  let source: ExtensionsSource
  private let path: String?
  /// Nil where the process has none.
  private let media: MediaStore?
  private let logger: Logger
  /// Where the file is read again: nothing else waits for that.
  private let thread: EventLoop?

  /// Reads the file that the settings name; nothing where they name none.
  ///
  /// - Parameter metrics: where the media folder's are shown; nil for a tool.
  init(_ values: SettingValues, _ logger: Logger, _ metrics: MetricRegistry? = nil) async throws(Failure) {
    let media = try await MediaOptions.store(values, logger.with(component: "media"), metrics)
    self.media = media
    path = values[TransformOptions.extensions]
    do throws(Failure) {
      source = ExtensionsSource(
        try path.map { path throws(Failure) in
          try values.naming(TransformOptions.extensions) { () throws(Failure) in try Self.inForce(path, media) }
        } ?? ExtensionsFile())
    } catch {
      await media?.close()
      throw error
    }
    thread = path.map { _ in EventLoop(name: "extensions") }
    self.logger = logger.with(component: "extensions")
  }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - place: whose extensions are wanted.
  ///   - own: what it may use beside the built-in extensions.
  ///   - media: where attachments are kept; without it their extensions fail.
  /// - Throws: what is wrong first, with the file's name, the place and the rule.
  static func read(
    _ path: String, at place: ExtensionsFile.Place = .workers, own: [OwnExtension] = Program.extensions, media: MediaStore? = nil
  ) throws(Failure) -> ExtensionsFile {
    do throws(FieldError) {
      return try ExtensionsFile(path: path, at: place, own: own, media: media)
    } catch {
      throw Failure(.wrongUsage, "\(error)")
    }
  }

  /// Reads a file that is to be in force in the workers: what it needs is there.
  private static func inForce(_ path: String, _ media: MediaStore?, own: [OwnExtension] = Program.extensions) throws(Failure)
    -> ExtensionsFile
  {
    let extensions = try read(path, own: own, media: media)
    guard media != nil || !extensions.usesMedia else {
      throw Failure(.wrongUsage, "\(path): the extension attach needs a folder for what it fetches: give --media FOLDER")
    }
    return extensions
  }

  /// Lets go of what the extensions have used; after the lanes. A folder that hangs does not keep the process.
  func close() async {
    if let media { await Task { await media.close() }.value(by: .now + .seconds(2)) }
  }

  /// Reads the file again; nil where there is none. A wrong one changes nothing, and is told.
  var reload: (@Sendable () -> Void)? {
    guard let path, let thread else { return nil }
    return { [source, logger, media, own = Program.extensions] in
      thread.execute {
        do throws(Failure) {
          let extensions = try Self.inForce(path, media, own: own)
          source.replace(with: extensions)
          logger.info("the extensions' file is in force", ["file": path, "applications": extensions.all.count])
        } catch {
          logger.error("the extensions' file is wrong; the former one stays in force", ["error": "\(error)"])
        }
      }
    }
  }
}
