import Redis

/// The scripts are the files of the folder `Scripts`, embedded in the program.
///
/// The head of each file says what the script does, which keys and arguments it takes, and what it answers. `Deploy/check-scripts` composes
/// and checks them.
extension RedisScript {
  /// Composes a script: replaces each line `-- include: NAME` of the file by the file `Pieces/NAME.lua`.
  convenience init(file: [UInt8]) {
    let lines = Self.text(file).split(separator: "\n", omittingEmptySubsequences: false)
    self.init(lines.map { Self.piece(named: $0) ?? String($0) }.joined(separator: "\n"))
  }

  /// The piece that a line includes; nil for any other line.
  private static func piece(named line: Substring) -> String? {
    let words = line.drop { $0 == " " }
    guard words.hasPrefix("-- include: ") else { return nil }
    guard let file = pieces[words.dropFirst("-- include: ".count)] else { preconditionFailure("there is no piece for '\(line)'") }
    return text(file)
  }

  private static func text(_ file: [UInt8]) -> String { String(decoding: file, as: UTF8.self) }

  /// The pieces by the names that scripts include them by.
  private static let pieces: [Substring: [UInt8]] = [
    "earlier": PackageResources.earlier_lua,
    "entries": PackageResources.entries_lua,
    "fields": PackageResources.fields_lua,
    "floor": PackageResources.floor_lua,
    "head": PackageResources.head_lua,
    "mend": PackageResources.mend_lua,
    "newness": PackageResources.newness_lua,
    "now": PackageResources.now_lua,
    "placed": PackageResources.placed_lua,
    "refusals": PackageResources.refusals_lua,
    "refused": PackageResources.refused_lua,
  ]
}
