/// A setting, declared once: its parsing, help, errors and documentation come from this.
///
///     let window = Setting("fanout.window", .integer(1...1024), default: 32, "Notifications unacknowledged at most per session.")
///     …
///     values[window]  // an Int
///
/// Its value comes from its flag, else from its environment variable, else from its key in the configuration file, else from its default.
public struct Setting<Value: Sendable>: Sendable {
  /// The setting without its type, for lists.
  public let declaration: SettingDeclaration

  /// Declares a setting that has a default.
  ///
  /// - Parameters:
  ///   - key: the key in the configuration file, in lower case with dots and dashes. The environment variable follows from it:
  ///     `fanout.window` is `CARILLON_FANOUT_WINDOW`.
  ///   - flag: the flag without its dashes; by default the key's last part.
  ///   - kind: how the value is written.
  ///   - defaultValue: the value if no source has it.
  ///   - isSecret: whether errors, logs and listings must not show the value.
  ///   - text: its effect, in plain sentences.
  public init(
    _ key: String, flag: String? = nil, _ kind: SettingKind<Value>, default defaultValue: Value, isSecret: Bool = false, _ text: String
  ) {
    let written = kind.write(defaultValue)
    declaration = SettingDeclaration(
      key: key, flag: flag, kind: kind, absent: .value(defaultValue), defaultText: written.isEmpty ? nil : written, isSecret: isSecret,
      text: text)
  }

  /// Declares a setting that may be missing. Then its value is nil.
  public init<Wrapped>(_ key: String, flag: String? = nil, _ kind: SettingKind<Wrapped>, isSecret: Bool = false, _ text: String)
  where Value == Wrapped? {
    declaration = SettingDeclaration(
      key: key, flag: flag, kind: kind.optional, absent: .value(Value.none as any Sendable), defaultText: nil, isSecret: isSecret,
      text: text)
  }

  /// Declares a setting that the command needs.
  public static func required(_ key: String, _ kind: SettingKind<Value>, _ text: String) -> Setting {
    Setting(
      declaration: SettingDeclaration(
        key: key, flag: nil, kind: kind, absent: .required, defaultText: nil, isSecret: false, text: text))
  }

  private init(declaration: SettingDeclaration) { self.declaration = declaration }
}

/// An element of a group: a setting of any type, or a prefix of settings for a library.
public protocol DeclaredSetting: Sendable {
  /// The setting without its type.
  var declaration: SettingDeclaration { get }
}

extension Setting: DeclaredSetting {}

/// A prefix whose keys are passed unchanged to a library, such as `kafka.linger.ms`.
///
/// Write them as `--kafka.linger.ms 10`, as the variable `CARILLON_KAFKA_LINGER_MS`, or in the file as `kafka.linger.ms = 10`. A
/// declared key under the prefix is a setting like any other.
public struct PassedOnSettings: DeclaredSetting {
  /// The setting without its type: all flags `--PREFIX.NAME`.
  public let declaration: SettingDeclaration

  /// Declares the prefix.
  ///
  /// - Parameter isKnown: whether the library has a property, by its name in lower case with dots. A variable of another name is a mistake.
  public init(prefix: String, _ text: String, isKnown: @escaping @Sendable (String) -> Bool) {
    declaration = SettingDeclaration(
      key: "\(prefix).*", flag: "\(prefix).NAME", kind: SettingKind<String>.string("VALUE"), absent: .value(""), defaultText: nil,
      isSecret: true, text: text, isKnown: isKnown)
  }
}

/// A setting without its type, as the parser, the help and the documentation see it.
public struct SettingDeclaration: Sendable {
  enum Absent: Sendable {
    case value(any Sendable)
    case required
  }

  /// The key in the configuration file.
  public let key: String
  /// The flag, without its dashes.
  public let flag: String
  /// The environment variable.
  public let environment: String
  /// Its effect.
  let text: String
  /// The default as it is written; nil if there is none.
  let defaultText: String?
  /// The allowed values, as the end of "must be …".
  let allowed: String
  /// Whether errors, logs and listings must not show the value.
  let isSecret: Bool
  let placeholder: String?
  let isRepeated: Bool
  let completion: Completion
  let absent: Absent
  let read: @Sendable ([String]) -> (any Sendable)?
  /// Whether the library of this prefix has a property; false for any other setting.
  let isKnown: @Sendable (String) -> Bool

  init<Value>(
    key: String, flag: String?, kind: SettingKind<Value>, absent: Absent, defaultText: String?, isSecret: Bool, text: String,
    isKnown: @escaping @Sendable (String) -> Bool = { _ in false }
  ) {
    let isKey = { (byte: UInt8) in
      byte == 0x2D || byte == 0x2E || byte == 0x2A || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
    }
    precondition(!key.isEmpty && key.utf8.allSatisfy(isKey), "a setting's key has lower-case letters, digits, dots and dashes: \(key)")
    self.key = key
    self.flag = flag ?? String(key[(key.lastIndex(of: ".").map(key.index(after:)) ?? key.startIndex)...])
    self.environment = "CARILLON_" + key.uppercased().map { $0 == "." || $0 == "-" ? "_" : String($0) }.joined()
    self.text = text
    self.defaultText = defaultText
    self.allowed = kind.allowed
    self.isSecret = isSecret
    self.placeholder = kind.placeholder
    self.isRepeated = kind.isRepeated
    self.completion = kind.completion
    self.absent = absent
    self.read = { kind.read($0) }
    self.isKnown = isKnown
  }

  /// Whether the flag has no value.
  var isSwitch: Bool { placeholder == nil }
  /// Whether this is the flag of a library's prefix.
  var isPassedOn: Bool { key.hasSuffix(".*") }
  /// The library's prefix, without its last dot.
  var library: String { String(key.dropLast(2)) }
}

extension SettingKind {
  /// The same kind for a setting that may be missing.
  fileprivate var optional: SettingKind<Value?> {
    let (read, write) = (self.read, self.write)
    return SettingKind<Value?>(
      placeholder: placeholder, allowed: allowed, isRepeated: isRepeated, completion: completion,
      read: { texts in read(texts).map { .some($0) } },
      write: { $0.map(write) ?? "" })
  }
}
