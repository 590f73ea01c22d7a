import Cryptography
import JSON
public import Notifications

/// The file that defines the service extensions for an application's mutable notifications.
///
///     {
///       "applications": {
///         "com.example.shop": [
///           { "name": "open", "use": "decrypt", "keys": "shop-keys.json" },
///           { "name": "mark", "use": "set-and-copy", "prefix": { "/aps/alert/title": "[modified] " } }
///         ]
///       }
///     }
public struct ExtensionsFile: Sendable {
  /// The maximum size of the file, in bytes.
  public static var maximumBytes: Int { 1 << 20 }
  /// The maximum number of applications.
  public static var maximumApplications: Int { 10_000 }

  /// The chains by the name hash of their application.
  private let chains: [UInt64: ExtensionChain]
  /// Whether an extension stores media.
  public let usesMedia: Bool
  /// Identifies the file: the first bytes of a digest of its content; nil without a file.
  public private(set) var digest: String?

  /// Where an extension runs: in one place, and only that place reads its keys.
  public enum Place: String, Sendable, CaseIterable {
    /// The transform workers.
    case workers
    /// The device that shows the notification.
    case device
  }

  /// No extensions.
  public init() { (chains, usesMedia) = ([:], false) }

  /// Makes it from chains, one for each application. Two of the same application are the caller's mistake.
  public init(_ chains: [ExtensionChain]) {
    self.chains = Dictionary(uniqueKeysWithValues: chains.map { (NameHash.hash($0.application), $0) })
    usesMedia = false
  }

  /// Reads a file, and the files that it names. The calls block.
  ///
  /// - Parameters:
  ///   - place: the place of the wanted extensions. Files of others are not read.
  ///   - own: extensions that the file may use beside the built-in ones.
  ///   - media: the store for attachments; without it their extensions fail.
  /// - Throws: the first error with its place, which begins with the file's path.
  public init(path: String, at place: Place = .workers, own: [OwnExtension] = [], media: MediaStore? = nil) throws(FieldError) {
    guard let bytes = try BoundedFile.read(path, limit: Self.maximumBytes) else {
      throw FieldError(field: path, rule: "there is no such file")
    }
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ""
    do throws(FieldError) {
      try self.init(parsing: bytes, in: folder, at: place, own: own, media: media)
      digest = Hexadecimal.text(Array(bytes.withUnsafeBytes { Digest.sha256($0) }.prefix(8)))
    } catch {
      throw FieldError(field: path, rule: "\(error)")
    }
  }

  /// Reads a file, and the files that it names.
  ///
  /// - Parameters:
  ///   - folder: the file's folder, from which relative paths in it begin.
  ///   - place: the place of the wanted extensions. Files of others are not read.
  ///   - own: extensions that the file may use beside the built-in ones.
  ///   - media: the store for attachments; without it their extensions fail.
  /// - Throws: the first error with its place: `applications["com.example.shop"][0].prefix`.
  public init(
    parsing bytes: [UInt8], in folder: String = "", at place: Place = .workers, own: [OwnExtension] = [], media: MediaStore? = nil
  ) throws(FieldError) {
    guard bytes.count <= Self.maximumBytes else {
      throw FieldError(field: "", rule: "The file has \(bytes.count) bytes; it has at most \(Self.maximumBytes).")
    }
    var file = try SettingsObject(Self.json(bytes), at: "", in: folder)
    let applications = try file.entries("applications")
    try file.finish()
    guard applications.count <= Self.maximumApplications else {
      throw FieldError(field: "applications", rule: "There are at most \(Self.maximumApplications) applications.")
    }
    var chains: [UInt64: ExtensionChain] = [:]
    var names: Set<Name> = []
    var resources = ExtensionResources(own, media)
    for application in applications {
      let path = "applications[\(JSONValue.string(PrintedText.echo(application.key)).text)]"
      guard (1...RequestLimits.topicBytes).contains(application.key.utf8.count) else {
        throw FieldError(field: path, rule: "An application's bundle id has 1 to \(RequestLimits.topicBytes) bytes.")
      }
      guard names.insert(Name(application.key)).inserted else { throw FieldError(field: path, rule: "An application stands once.") }
      let steps = try Self.steps(application.value, at: path, in: folder, place, &resources)
      guard !steps.isEmpty else { continue }
      chains[NameHash.hash(application.key)] = ExtensionChain(
        application: Name(application.key), steps: steps, settings: application.value.text)
    }
    self.chains = chains
    usesMedia = resources.usesMedia
  }

  private static func json(_ bytes: [UInt8]) throws(FieldError) -> JSONValue {
    do throws(JSONError) {
      return try bytes.withUnsafeBufferPointer { text throws(JSONError) in try JSONValue(parsing: UnsafeRawBufferPointer(text)) }
    } catch {
      let before = bytes.prefix(error.offset)
      let line = before.count { $0 == UInt8(ascii: "\n") } + 1
      let column = before.count - (before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0) + 1
      throw FieldError(field: "line \(line), column \(column)", rule: "\(error)")
    }
  }

  /// The extensions of an application that run in a place.
  private static func steps(
    _ value: JSONValue, at path: String, in folder: String, _ place: Place, _ resources: inout ExtensionResources
  ) throws(FieldError) -> [ExtensionChain.Step] {
    guard let elements = value.elements, (1...ExtensionStates.maximum).contains(elements.count) else {
      throw FieldError(field: path, rule: "The extensions of an application are a list of 1 to \(ExtensionStates.maximum) objects.")
    }
    var steps: [ExtensionChain.Step] = []
    var names: Set<String> = []
    for (index, element) in elements.enumerated() {
      var object = try SettingsObject(element, at: "\(path)[\(index)]", in: folder)
      let name = try object.requiredText("name", longest: ExtensionStates.longestName)
      guard name.utf8.allSatisfy({ UInt8(ascii: "!")...UInt8(ascii: "~") ~= $0 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
      else { throw object.wrong("name", "A name has only visible ASCII characters, without quotes and backslashes.") }
      guard names.insert(name).inserted else {
        throw object.wrong("name", "The extensions of an application have different names.")
      }
      let written = try object.word("place", default: Place.workers)
      let use = try object.requiredText("use", longest: 64)
      let kind = ExtensionKind(use, own: resources.own)
      if written == .device, kind?.isCalled == true { throw object.wrong("place", "An extension of this kind runs in the workers.") }
      // A name of another place may be unknown here.
      guard written == place else { continue }
      guard let kind else {
        throw object.wrong("use", "This must be one of: \(ExtensionKind.names(resources.own).joined(separator: ", ")).")
      }
      let work = try kind.make(&object, of: element, at: place, &resources)
      try object.finish()
      steps.append(ExtensionChain.Step(name: name, work: work))
      guard ExtensionChain.hasOneScope(steps) else {
        throw object.wrong(
          "per",
          "What is called for some of those who get a notification is called for each locale, or for each device: all of an application alike."
        )
      }
      guard ExtensionChain.isInOrder(steps) else {
        throw object.wrong(
          "use", "An extension that is asked once for a request stands before those that depend on the device or its locale.")
      }
    }
    return steps
  }

  /// Whether no application has extensions.
  public var isEmpty: Bool { chains.isEmpty }

  /// The chains, in the order of their applications' names.
  public var all: [ExtensionChain] { chains.values.sorted { $0.application < $1.application } }

  /// The chain of the application with this name hash.
  public func chain(application hash: UInt64) -> ExtensionChain? { chains[hash] }
}
