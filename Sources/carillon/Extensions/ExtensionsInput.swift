import EventLoop
import Extensions
import Notifications
import Worker

/// The extensions' file of a process: read at its start, and again whenever somebody asks for it.
struct ExtensionsInput: Sendable {
  /// Where it is.
  let path: String

  private var folder: String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "" }

  /// Reads it, and the files that it names.
  ///
  /// - Throws: what is wrong first, with the file's name, the place and the rule.
  func read() throws(Failure) -> ExtensionsFile {
    let bytes: [UInt8]
    do {
      bytes = try Descriptor.contents(of: path, limit: ExtensionsFile.longest)
    } catch {
      throw Failure(.wrongUsage, "\(error)")
    }
    do throws(FieldError) {
      return try ExtensionsFile(parsing: bytes, in: folder)
    } catch {
      throw Failure(.wrongUsage, "\(path): \(error)")
    }
  }
}

/// The extensions of a process of the transform stage, which its lanes share, and which SIGHUP brings up to date.
struct ExtensionsInForce: Sendable {
  let source: ExtensionsSource
  private let input: ExtensionsInput?
  private let logger: Logger

  /// Reads the file that the settings name; nothing where they name none.
  init(_ values: SettingValues, _ logger: Logger) throws(Failure) {
    input = values[TransformOptions.extensions].map { ExtensionsInput(path: $0) }
    source = ExtensionsSource(try input?.read() ?? ExtensionsFile())
    self.logger = logger.with(component: "extensions")
  }

  /// Whether there is a file to read again.
  var isReloadable: Bool { input != nil }

  /// Reads the file again. One that is wrong changes nothing, and is told.
  func reload() {
    guard let input else { return }
    do throws(Failure) {
      let extensions = try input.read()
      source.replace(with: extensions)
      logger.info("the extensions' file is in force", ["file": input.path, "applications": extensions.all.count])
    } catch {
      logger.error("the extensions' file is wrong; the former one stays in force", ["error": "\(error)"])
    }
  }
}
