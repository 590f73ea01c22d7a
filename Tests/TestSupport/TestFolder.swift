import Foundation

/// A folder of a test, which goes with all that is in it when the test has ended.
public struct TestFolder: Sendable {
  /// Where it is.
  public let path: String

  private init() throws {
    var name = Array("/tmp/carillon-test-XXXXXX".utf8CString)
    guard mkdtemp(&name) != nil else { throw CocoaError(.fileWriteUnknown) }
    path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private func remove() { try? FileManager.default.removeItem(atPath: path) }

  /// Lends one that has these files, by their names in it; a name may have folders of its own.
  public static func with<R>(_ files: [String: String] = [:], _ body: (TestFolder) throws -> R) throws -> R {
    let folder = try TestFolder()
    defer { folder.remove() }
    for (name, text) in files { try folder.write(name, text) }
    return try body(folder)
  }

  /// The same for a test that waits.
  public static func with<R>(_ files: [String: String] = [:], _ body: (TestFolder) async throws -> R) async throws -> R {
    let folder = try TestFolder()
    defer { folder.remove() }
    for (name, text) in files { try folder.write(name, text) }
    return try await body(folder)
  }

  /// How many names a folder has; none where it is not there.
  public static func count(of path: String) -> Int { (try? FileManager.default.contentsOfDirectory(atPath: path))?.count ?? 0 }

  /// Writes a file, and returns its path.
  @discardableResult public func write(_ name: String, _ text: String, isExecutable: Bool = false) throws -> String {
    let file = "\(path)/\(name)"
    try FileManager.default.createDirectory(
      atPath: String(file[..<(file.lastIndex(of: "/") ?? file.endIndex)]), withIntermediateDirectories: true)
    guard isExecutable else {
      try text.write(toFile: file, atomically: false, encoding: .utf8)
      return file
    }
    // Another program writes it. A process that a test starts at this moment holds the files that this process writes until its exec, and
    // Linux runs no program that somebody may write ("text file busy").
    try text.write(toFile: file + ".text", atomically: false, encoding: .utf8)
    let install = Process()
    install.executableURL = URL(fileURLWithPath: "/usr/bin/install")
    install.arguments = ["-m", "700", file + ".text", file]
    try install.run()
    install.waitUntilExit()
    guard install.terminationStatus == 0 else { throw CocoaError(.fileWriteUnknown) }
    try FileManager.default.removeItem(atPath: file + ".text")
    return file
  }
}
