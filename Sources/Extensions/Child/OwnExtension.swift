public import JSON

/// A service extension in Swift that a team has written, and that its own worker binary brings along. The extensions' file names it in `use`.
///
/// It does not run in the worker: the worker starts the same binary again as a child, so that a trap or an endless loop costs a fallback and
/// not a lane.
public struct OwnExtension: Sendable {
  /// What the file calls it.
  public let name: String
  /// Makes it of its `settings` in the file, an object.
  let make: @Sendable (JSONValue) throws -> any ServiceExtension

  /// An extension by its name.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 bytes, and none of the built-in ones; else that is the caller's mistake.
  ///   - make: makes it in the child, once; what it throws is the failure of each call.
  public init(_ name: String, _ make: @escaping @Sendable (_ settings: JSONValue) throws -> any ServiceExtension) {
    precondition((1...64).contains(name.utf8.count) && ExtensionKind(name) == nil, "an own extension has a name of its own")
    (self.name, self.make) = (name, make)
  }

  /// The words of the command that a binary understands which brings this extension: it runs it as a child.
  public static let command = "extension"
}
