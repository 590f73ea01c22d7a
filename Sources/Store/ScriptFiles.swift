import EmbeddedScripts
import Redis

/// The scripts are the files of the folder `Scripts`, embedded in the program by `EmbeddedScripts`.
///
/// The head of each file says what the script does, which keys and arguments it takes, and what it answers. `Deploy/check-scripts` composes
/// and checks them.
extension RedisScript {
  /// Composes a script: replaces each line `-- include: NAME` of the file by the file `Pieces/NAME.lua`.
  convenience init(file: String) {
    let lines = Self.text(file).split(separator: "\n", omittingEmptySubsequences: false)
    self.init(lines.map { Self.piece(named: $0) ?? String($0) }.joined(separator: "\n"))
  }

  /// The piece that a line includes; nil for any other line.
  private static func piece(named line: Substring) -> String? {
    let words = line.drop { $0 == " " }
    guard words.hasPrefix("-- include: ") else { return nil }
    return text(String(words.dropFirst("-- include: ".count)))
  }

  private static func text(_ file: String) -> String {
    guard let text = carillon_script(file) else { preconditionFailure("EmbeddedScripts has no file '\(file)'") }
    return String(cString: text)
  }
}
