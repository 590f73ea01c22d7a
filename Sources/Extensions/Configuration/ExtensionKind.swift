import JSON
import Notifications

/// The values of `use` in the file: a built-in extension, or one that is part of the binary.
enum ExtensionKind {
  case setAndCopy
  case decrypt
  case localize
  case attach
  case webhook
  case child
  case own(OwnExtension)

  private static let builtIn: [(name: String, kind: ExtensionKind)] = [
    ("set-and-copy", .setAndCopy), ("decrypt", .decrypt), ("localize", .localize), ("attach", .attach), ("webhook", .webhook),
    ("child", .child),
  ]

  /// Nil for an unknown name.
  init?(_ name: String, own: [OwnExtension] = []) {
    guard let kind = Self.builtIn.first(where: { $0.name == name })?.kind ?? own.first(where: { $0.name == name }).map(Self.own) else {
      return nil
    }
    self = kind
  }

  /// All names.
  static func names(_ own: [OwnExtension]) -> [String] { builtIn.map(\.name) + own.map(\.name) }

  /// Whether it may take long.
  var isCalled: Bool {
    switch self {
    case .setAndCopy, .decrypt, .localize: false
    case .attach, .webhook, .child, .own: true
    }
  }

  /// Makes an extension from its settings.
  ///
  /// - Parameter element: all its members in the file.
  func make(
    _ settings: inout SettingsObject, of element: JSONValue, at place: ExtensionsFile.Place, _ resources: inout ExtensionResources
  ) throws(FieldError) -> ExtensionChain.Step.Work {
    switch self {
    case .setAndCopy: return .immediate(try SetAndCopy(&settings))
    case .decrypt: return .immediate(try Decrypt(&settings, at: place))
    case .localize: return .immediate(try Localize(&settings))
    case .attach:
      resources.usesMedia = true
      // A file that one server does not deliver says nothing about others.
      let limits = try ExtensionDefinition.Limits(&settings, breaker: 0)
      let attach = try AttachSettings(&settings, concurrency: limits.concurrency)
      return .called(ExtensionDefinition(limits) { [media = resources.media] in Attach(attach, media, on: $0) })
    case .webhook:
      let limits = try ExtensionDefinition.Limits(&settings)
      let webhook = try WebhookSettings(&settings, concurrency: limits.concurrency)
      return .called(ExtensionDefinition(limits) { Webhook(webhook, on: $0) })
    case .child: return .called(try resources.program(&settings, of: element, nil))
    case .own(let own): return .called(try resources.program(&settings, of: element, own))
    }
  }
}

/// The shared resources of a file's extensions.
struct ExtensionResources {
  /// Each lane runs all of them.
  private static let maximumPrograms = 64
  /// Extensions that are part of the binary.
  let own: [OwnExtension]
  /// Nil if the process has none.
  let media: MediaStore?
  /// Whether an extension stores media.
  fileprivate(set) var usesMedia = false
  /// The programs of the file. Extensions with the same settings share one, whatever their names.
  private var programs: [Name: ExtensionDefinition] = [:]

  init(_ own: [OwnExtension], _ media: MediaStore?) { (self.own, self.media) = (own, media) }

  /// - Parameter own: nil for a program that the file names.
  fileprivate mutating func program(
    _ object: inout SettingsObject, of element: JSONValue, _ own: OwnExtension?
  ) throws(FieldError) -> ExtensionDefinition {
    let limits = try ExtensionDefinition.Limits(&object)
    let child = if let own { try ChildSettings(own, &object) } else { try ChildSettings(&object) }
    var settings = element
    settings.set("name", nil)
    if let known = programs[Name(settings.text)] { return known }
    guard programs.count < Self.maximumPrograms else {
      throw object.wrong("use", "A file has at most \(Self.maximumPrograms) programs with different settings.")
    }
    let definition = ExtensionDefinition(limits) { Child(child, on: $0) }
    programs[Name(settings.text)] = definition
    return definition
  }
}

extension ExtensionDefinition.Limits {
  /// Reads the members `budget`, `concurrency`, `breaker`, `per` and `unfinished` of all slow extensions.
  ///
  /// - Parameter breaker: the default.
  init(_ settings: inout SettingsObject, breaker: Int = Self().breaker) throws(FieldError) {
    self.init()
    self.breaker = breaker
    if let budget = try settings.integer("budget", in: 10...Int64(CallBudget.longestMilliseconds)) { budgetMilliseconds = Int(budget) }
    if let concurrency = try settings.integer("concurrency", in: 1...10_000) { self.concurrency = Int(concurrency) }
    if let breaker = try settings.integer("breaker", in: 0...1_000) { self.breaker = Int(breaker) }
    scope = try settings.word("per", default: .request)
    unfinished = try settings.word("unfinished", default: .bestAttempt)
  }
}
