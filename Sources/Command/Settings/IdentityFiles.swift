import Cryptography
import Worker

extension SettingValues {
  /// The most bytes of a file with certificates or a key.
  static var certificateBytes: Int { 1 << 20 }

  /// Reads a certificate and its key from the files that two settings name; nil if neither names one.
  func identity(
    _ certificate: Setting<String?>, _ key: Setting<String?>
  ) throws(UsageError) -> (identity: TLSIdentity, certificate: InputFile, key: InputFile)? {
    guard (self[certificate] == nil) == (self[key] == nil) else {
      throw UsageError(
        .contradiction, "give --\(certificate.declaration.flag) and --\(key.declaration.flag) together, or none of them")
    }
    guard let first = try file(certificate, limit: Self.certificateBytes), let second = try file(key, limit: Self.certificateBytes) else {
      return nil
    }
    do throws(TLSError) { return (try TLSIdentity(certificates: first.bytes, key: second.bytes), first, second) } catch {
      let (setting, path) = error.code == .badKey ? (key, second.path) : (certificate, first.path)
      throw UsageError(.wrongValue, "\(name(of: setting)): \(path): \(error)")
    }
  }
}
