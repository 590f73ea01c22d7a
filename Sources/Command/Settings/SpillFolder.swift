import Glibc
import Worker

extension SettingValues {
  /// The folder that a setting names, or the one for temporary files: `$TMPDIR`, otherwise `/tmp`.
  func spillFolder(_ setting: Setting<String?>) -> String { self[setting] ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }
}
