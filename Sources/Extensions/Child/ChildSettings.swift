import Glibc
import JSON
import Notifications

/// The settings of a child program in the extensions' file.
struct ChildSettings: Sendable {
  /// The program's path, with a slash: a name alone would be searched for in `PATH`.
  let program: String
  /// Its arguments, without its own name.
  let arguments: [String]
  /// Its environment, `NAME=value` each: a few variables of the worker, and those of the file.
  let environment: [String]
  /// The most memory that it may allocate, in bytes.
  let memoryBytes: Int
  /// The settings that it gets at its start: an object.
  let settings: JSONValue

  /// Reads the members `program` and `arguments`, and those of all children.
  init(_ object: inout SettingsObject) throws(FieldError) {
    let program = object.path(try object.requiredText("program", longest: 4_096))
    if let reason = Self.refusal(of: program) { throw object.wrong("program", "\(program): \(reason)") }
    try self.init(program, try object.texts("arguments"), &object)
  }

  /// Why a program cannot be started; nil if it can.
  private static func refusal(of program: String) -> String? {
    var facts = stat()
    guard stat(program, &facts) == 0 else { return "\(String(cString: strerror(errno)))." }
    guard facts.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file." }
    return access(program, X_OK) == 0 ? nil : "this user may not execute it; 'chmod +x' allows it."
  }

  /// Reads the members of all children, for an extension that is part of this binary.
  init(_ own: OwnExtension, _ object: inout SettingsObject) throws(FieldError) {
    // This path is right even if the binary was replaced, or another program runs before it in the child.
    try self.init("/proc/\(getpid())/exe", [OwnExtension.command, own.name], &object)
  }

  /// Reads the members `environment`, `memory` and `settings`, which all children have.
  private init(_ program: String, _ arguments: [String], _ object: inout SettingsObject) throws(FieldError) {
    (self.program, self.arguments) = (program, arguments)
    environment = Self.inherited + (try Self.variables(&object))
    memoryBytes = Int(try object.integer("memory", in: 16...65_536) ?? 1_024) << 20
    settings = object.take("settings") ?? [:]
    guard settings.members != nil else { throw object.wrong("settings", "This must be an object.") }
  }

  /// Variables that every program may need. The rest of the worker's environment has passwords, so the child does not get it.
  private static let inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"].compactMap { (name: String) in
    getenv(name).map { "\(name)=\(String(cString: $0))" }
  }

  private static func variables(_ object: inout SettingsObject) throws(FieldError) -> [String] {
    let entries = try object.entries("environment")
    guard entries.count <= 64 else { throw object.wrong("environment", "There are at most 64 variables.") }
    var variables: [String] = []
    for entry in entries {
      guard let value = entry.value.stringValue, value.utf8.count <= 4_096, !value.utf8.contains(0), !entry.key.isEmpty,
        entry.key.utf8.count <= 256, !entry.key.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "=") })
      else { throw object.wrong("environment", "A variable has a name without =, and a text of at most 4096 bytes.") }
      variables.append("\(entry.key)=\(value)")
    }
    return variables
  }
}
