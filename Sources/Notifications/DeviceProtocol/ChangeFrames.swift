public import JSON

/// The frame `settings`: settings of the person or of the device changed.
///
/// The person changed the authorization or the quiet hours, or the device has another locale or time zone.
public struct SettingsFrame: Sendable, Equatable, JSONWritable {
  /// The device's own id for the request; without one the frame has no answer.
  public var request: String?
  /// What the person lets notifications do; `nil` if unchanged.
  public var authorization: Authorization?
  /// The locale; `nil` if unchanged.
  public var locale: String?
  /// The time zone; `nil` if unchanged.
  public var timeZone: String?
  /// The person's settings for all of their devices; `nil` if unchanged.
  public var person: PersonSettings?

  /// Creates a change of settings.
  public init(
    request: String? = nil, authorization: Authorization? = nil, locale: String? = nil, timeZone: String? = nil,
    person: PersonSettings? = nil
  ) {
    (self.request, self.authorization, self.locale, self.timeZone) = (request, authorization, locale, timeZone)
    self.person = person
  }

  /// Whether it changes the device's registration.
  public var changesRegistration: Bool { authorization != nil || locale != nil || timeZone != nil }

  init(_ reader: ObjectReader) throws(FieldError) {
    request = try reader.text("request", longest: FrameLimits.idBytes)
    authorization = try reader["authorization"].map { value throws(FieldError) in try Authorization(value, path: "authorization") }
    locale = try reader.text("locale", longest: Registration.wordBytes)
    timeZone = try reader.text("timeZone", longest: Registration.wordBytes)
    try reader.checkZone(timeZone)
    person = try reader["quiet"].map { value throws(FieldError) in
      // An object without members removes the quiet hours.
      PersonSettings(quiet: value.members?.isEmpty == true ? nil : try QuietHours(value))
    }
    guard changesRegistration || person != nil else {
      throw reader.error("authorization", "A change of settings has authorization, locale, timeZone or quiet.")
    }
  }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openFrame("settings")
    if let request { json.member("request", request) }
    json.member("authorization", authorization)
    if let locale { json.member("locale", locale) }
    if let timeZone { json.member("timeZone", timeZone) }
    if let person, person.quiet == nil { json.member("quiet", JSONValue.object([])) }
    json.member("quiet", person?.quiet)
    json.closeObject()
  }
}

/// The frame `categories`: the application registered its categories again.
public struct CategoriesFrame: Sendable, Equatable, JSONWritable {
  /// The device's own id for the request; without one the frame has no answer.
  public var request: String?
  /// All present categories.
  public var categories: [NotificationCategory]

  /// Creates a change of categories.
  public init(request: String? = nil, categories: [NotificationCategory]) {
    (self.request, self.categories) = (request, categories)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    request = try reader.text("request", longest: FrameLimits.idBytes)
    categories = try reader.required("categories", try NotificationCategory.list(reader))
  }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openFrame("categories")
    if let request { json.member("request", request) }
    json.member("categories", categories)
    json.closeObject()
  }
}

/// The frame `unregister`: the person signed out, or the application was removed.
public struct UnregisterFrame: Sendable, Equatable, JSONWritable {
  /// The device's own id for the request; without one the frame has no answer.
  public var request: String?

  /// Creates a request to unregister the device.
  public init(request: String? = nil) { self.request = request }

  init(_ reader: ObjectReader) throws(FieldError) { request = try reader.text("request", longest: FrameLimits.idBytes) }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openFrame("unregister")
    if let request { json.member("request", request) }
    json.closeObject()
  }
}

extension ObjectReader {
  /// Refuses a time zone that cannot be the name of one. A name that the cluster does not know counts as UTC.
  func checkZone(_ zone: String?) throws(FieldError) {
    guard let zone, !TimedTrigger.isZone(zone) else { return }
    throw error("timeZone", "A time zone has a name of the IANA database, such as Europe/Rome.")
  }
}
