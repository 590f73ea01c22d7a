import EventLoop
import Extensions
import Notifications
import Worker

/// The extensions of a process of the transform stage, which its lanes share, and which SIGHUP brings up to date.
struct ExtensionsInForce: Sendable {
  let source: ExtensionsSource
  private let path: String?
  private let logger: Logger
  /// Where the file is read again: nothing else waits for that.
  private let thread: EventLoop?

  /// Reads the file that the settings name; nothing where they name none.
  init(_ values: SettingValues, _ logger: Logger) throws(Failure) {
    path = values[TransformOptions.extensions]
    source = ExtensionsSource(try path.map { path throws(Failure) in try Self.read(path) } ?? ExtensionsFile())
    thread = path.map { _ in EventLoop(name: "extensions") }
    self.logger = logger.with(component: "extensions")
  }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - place: whose extensions are wanted.
  ///   - own: what it may use beside the built-in extensions.
  /// - Throws: what is wrong first, with the file's name, the place and the rule.
  static func read(
    _ path: String, at place: ExtensionsFile.Place = .workers, own: [OwnExtension] = Program.extensions
  ) throws(Failure) -> ExtensionsFile {
    do throws(FieldError) {
      return try ExtensionsFile(path: path, at: place, own: own)
    } catch {
      throw Failure(.wrongUsage, "\(error)")
    }
  }

  /// Reads the file again; nil where there is none. A wrong one changes nothing, and is told.
  var reload: (@Sendable () -> Void)? {
    guard let path, let thread else { return nil }
    return { [source, logger, own = Program.extensions] in
      thread.execute {
        do throws(Failure) {
          let extensions = try Self.read(path, own: own)
          source.replace(with: extensions)
          logger.info("the extensions' file is in force", ["file": path, "applications": extensions.all.count])
        } catch {
          logger.error("the extensions' file is wrong; the former one stays in force", ["error": "\(error)"])
        }
      }
    }
  }
}
