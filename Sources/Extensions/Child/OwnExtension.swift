public import JSON

/// A team's own service extension in Swift, which is part of its worker binary. The extensions' file names it in `use`.
///
/// It does not run in the worker. The worker starts the same binary again as a child, so that a trap or an endless loop costs a fallback
/// and not a lane.
public struct OwnExtension: Sendable {
  /// Its name in the file.
  public let name: String
  /// Makes it from its `settings` in the file, an object.
  let make: @Sendable (JSONValue) throws -> any ServiceExtension

  /// An extension with its name.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 bytes, and different from the built-in ones. Otherwise it is the caller's mistake.
  ///   - make: makes it in the child, once. An error that it throws is the failure of each call.
  public init(_ name: String, _ make: @escaping @Sendable (_ settings: JSONValue) throws -> any ServiceExtension) {
    precondition((1...64).contains(name.utf8.count) && ExtensionKind(name) == nil, "an own extension has a name of its own")
    (self.name, self.make) = (name, make)
  }

  /// The command of a binary that runs its own extension as a child.
  public static let command = "extension"
}
