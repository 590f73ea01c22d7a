import Notifications

/// Why a file cannot be stored or read.
public struct MediaError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason in one line, with the operator's own path and the system's words.
  public let description: String

  init(_ description: String) { self.description = description }

  static let noType = MediaError("its file is none of: \(MediaType.allCases.map(\.name.description).joined(separator: ", "))")
}
