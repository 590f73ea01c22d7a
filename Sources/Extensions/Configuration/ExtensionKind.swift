import JSON
import Notifications

/// What the file may call an extension in `use`: a built-in one, or one that the binary brings along.
enum ExtensionKind {
  case setAndCopy
  case decrypt
  case localize
  case webhook
  case child
  case own(OwnExtension)

  private static let builtIn: [(name: String, kind: ExtensionKind)] = [
    ("set-and-copy", .setAndCopy), ("decrypt", .decrypt), ("localize", .localize), ("webhook", .webhook), ("child", .child),
  ]

  /// Nil where nothing has this name.
  init?(_ name: String, own: [OwnExtension] = []) {
    guard let kind = Self.builtIn.first(where: { $0.name == name })?.kind ?? own.first(where: { $0.name == name }).map(Self.own) else {
      return nil
    }
    self = kind
  }

  /// All names.
  static func names(_ own: [OwnExtension]) -> [String] { builtIn.map(\.name) + own.map(\.name) }

  /// Whether it may take its time.
  var isCalled: Bool {
    switch self {
    case .setAndCopy, .decrypt, .localize: false
    case .webhook, .child, .own: true
    }
  }

  /// Makes an extension of its settings.
  ///
  /// - Parameter element: all that the file says of it.
  func make(
    _ settings: inout SettingsObject, of element: JSONValue, at place: ExtensionsFile.Place, _ programs: inout ExtensionPrograms
  ) throws(FieldError) -> ExtensionChain.Step.Work {
    switch self {
    case .setAndCopy: return .immediate(try SetAndCopy(&settings))
    case .decrypt: return .immediate(try Decrypt(&settings, at: place))
    case .localize: return .immediate(try Localize(&settings))
    case .webhook:
      let limits = try ExtensionDefinition.Limits(&settings)
      let webhook = try WebhookSettings(&settings, concurrency: limits.concurrency)
      return .called(ExtensionDefinition(limits) { Webhook(webhook, on: $0) })
    case .child: return .called(try programs.definition(&settings, of: element, nil))
    case .own(let own): return .called(try programs.definition(&settings, of: element, own))
    }
  }
}

/// The programs that a file has run: extensions with the same settings, whatever their names, have one of them together.
struct ExtensionPrograms {
  /// Each lane runs all of them.
  private static let maximum = 64
  /// Those that the binary brings along.
  let own: [OwnExtension]
  private var definitions: [String: ExtensionDefinition] = [:]

  init(_ own: [OwnExtension]) { self.own = own }

  /// - Parameter own: nil for a program that the file names.
  fileprivate mutating func definition(
    _ object: inout SettingsObject, of element: JSONValue, _ own: OwnExtension?
  ) throws(FieldError) -> ExtensionDefinition {
    let limits = try ExtensionDefinition.Limits(&object)
    let child = if let own { try ChildSettings(own, &object) } else { try ChildSettings(&object) }
    var settings = element
    settings.set("name", nil)
    if let known = definitions[settings.text] { return known }
    guard definitions.count < Self.maximum else {
      throw object.wrong("use", "A file has at most \(Self.maximum) programs with different settings.")
    }
    let definition = ExtensionDefinition(limits) { Child(child, on: $0) }
    definitions[settings.text] = definition
    return definition
  }
}

extension ExtensionDefinition.Limits {
  /// Of the members `budget`, `concurrency`, `breaker` and `unfinished`, which all extensions have that may take their time.
  init(_ settings: inout SettingsObject) throws(FieldError) {
    self.init()
    if let budget = try settings.integer("budget", in: 10...Int64(CallBudget.longestMilliseconds)) { budgetMilliseconds = Int(budget) }
    if let concurrency = try settings.integer("concurrency", in: 1...10_000) { self.concurrency = Int(concurrency) }
    if let breaker = try settings.integer("breaker", in: 0...1_000) { self.breaker = Int(breaker) }
    unfinished = try settings.word("unfinished", default: .bestAttempt)
  }
}
