import JSON
package import Notifications

/// A request from flags or from a line. Missing parts may be filled from another draft.
package struct RequestDraft: Sendable {
  /// The recipient, as in the header `target`.
  package var target: Name?
  /// The other headers of the contract and their values.
  package var headers: [Name: String] = [:]
  /// The parts of the payload, if there is no complete one.
  package var content = PayloadDraft()
  /// The whole payload.
  package var payload: [UInt8]?
  /// The identifiers that a removal names.
  package var identifiers: [Name] = []
  /// Whether a removal removes all.
  package var removesAll = false

  /// The rule of ``hasEffect``.
  package static let effectRule =
    "it would show nothing and do nothing: add 'title', 'subtitle', 'body', 'badge' or 'sound', or 'content-available'"

  /// Makes a draft without any part.
  package init() {}

  private static let order: [RequestHeader] = [
    .id, .topic, .collapseID, .expiration, .priority, .pushType, .channelID, .trigger, .operation, .whenOpened, .traceparent, .origin,
    .firing,
  ]

  /// Fills missing parts from another draft.
  package mutating func fill(from other: RequestDraft) {
    target = target ?? other.target
    headers.merge(other.headers) { own, _ in own }
    if identifiers.isEmpty { identifiers = other.identifiers }
    removesAll = removesAll || other.removesAll
    guard payload == nil, !isRemove else { return }
    if content.isEmpty { payload = other.payload }
    if payload == nil { content.fill(from: other.content) }
  }

  /// Whether it takes something away, by identifiers.
  private var isRemove: Bool { ["remove", "cancel"].contains(headers[RequestHeader.operation]) }

  /// Whether it has an effect. A complete payload counts as having one, and some push types need no payload.
  package var hasEffect: Bool {
    if payload != nil || content.hasEffect { return true }
    if headers[RequestHeader.operation] ?? "notify" != "notify" { return true }
    return !["alert", "background"].contains(headers[RequestHeader.pushType] ?? "alert")
  }

  /// How many requests it becomes: a removal or a cancel becomes one for each identifier.
  package var count: Int { isRemove ? max(1, removed.count) : 1 }

  /// Makes its records, with a random id if there is none.
  ///
  /// - Parameter line: its line in the file; 0 for flags.
  package func records(line: Int) -> [RequestToSend] {
    guard isRemove, !removed.isEmpty else {
      let removal = removesAll ? Array(#"{"all":true}"#.utf8) : nil
      return [record(line: line, headers: headers, value: payload ?? (isRemove ? removal : content.payload))]
    }
    return removed.map { identifier in
      var headers = headers
      headers[RequestHeader.collapseID] = identifier.text
      return record(line: line, headers: headers, value: payload)
    }
  }

  /// The identifiers of a removal or a cancel, however they were given.
  private var removed: [Name] {
    (headers[RequestHeader.collapseID].map { [Name($0)] } ?? []) + identifiers
  }

  private func record(line: Int, headers: [Name: String], value: [UInt8]?) -> RequestToSend {
    var headers = headers
    let given = headers[RequestHeader.id]
    // An invalid UUID stays: the rules reject it, unless checks are off.
    let id = given.map { NotificationID($0)?.description ?? $0 } ?? NotificationID.random().description
    headers[RequestHeader.id] = id
    var fields: [(name: String, value: String)] = []
    if let target { fields.append((RequestHeader.target.name.description, target.text)) }
    for header in Self.order {
      if let value = headers.removeValue(forKey: Name(header)) { fields.append((header.name.description, value)) }
    }
    fields += headers.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
    return RequestToSend(line: line, id: id, key: target.map { Array($0.utf8) } ?? [], headers: fields, value: value)
  }
}

extension Name {
  /// The name of a header of the contract.
  package init(_ header: RequestHeader) { self.init(header.name.description) }

  /// The name of a header in any case; one of the contract gets the contract's spelling.
  package init(header given: String) {
    let name = Name(given)
    self = RequestHeader.named(name).map { Name($0) } ?? name
  }
}

extension [Name: String] {
  /// The value of a header of the contract.
  package subscript(header: RequestHeader) -> String? {
    get { self[Name(header)] }
    set { self[Name(header)] = newValue }
  }
}

/// The parts of a payload that have their own flags.
package struct PayloadDraft: Sendable, Equatable {
  /// `aps.alert.title`.
  var title: String?
  /// `aps.alert.subtitle`.
  var subtitle: String?
  /// `aps.alert.body`.
  var body: String?
  /// `aps.badge`.
  var badge: Int64?
  /// `aps.sound`.
  var sound: String?
  /// `aps.category`.
  var category: Name?
  /// `aps.thread-id`.
  var threadID: Name?
  /// `aps.interruption-level`.
  var interruptionLevel: InterruptionLevel?
  /// `aps.relevance-score`, from 0 to 1.
  var relevanceScore: Double?
  /// Whether a service extension may change it.
  var isMutable = false
  /// Whether it wakes the application.
  var isContentAvailable = false
  /// Members beside `aps`: their names, and their values as JSON text.
  var custom: [CustomMember] = []

  /// Makes a payload of its parts.
  package init(
    title: String? = nil, subtitle: String? = nil, body: String? = nil, badge: Int64? = nil, sound: String? = nil, category: Name? = nil,
    threadID: Name? = nil, interruptionLevel: InterruptionLevel? = nil, relevanceScore: Double? = nil, isMutable: Bool = false,
    isContentAvailable: Bool = false, custom: [CustomMember] = []
  ) {
    (self.title, self.subtitle, self.body, self.badge, self.sound) = (title, subtitle, body, badge, sound)
    (self.category, self.threadID, self.isMutable, self.isContentAvailable) = (category, threadID, isMutable, isContentAvailable)
    (self.interruptionLevel, self.relevanceScore, self.custom) = (interruptionLevel, relevanceScore, custom)
  }

  /// Whether it has no part.
  package var isEmpty: Bool { self == PayloadDraft() }

  /// Whether it shows or does something. The other parts have an effect only together with these.
  var hasEffect: Bool {
    title != nil || subtitle != nil || body != nil || badge != nil || sound != nil || isContentAvailable
  }

  mutating func fill(from other: PayloadDraft) {
    title = title ?? other.title
    subtitle = subtitle ?? other.subtitle
    body = body ?? other.body
    badge = badge ?? other.badge
    sound = sound ?? other.sound
    category = category ?? other.category
    threadID = threadID ?? other.threadID
    interruptionLevel = interruptionLevel ?? other.interruptionLevel
    relevanceScore = relevanceScore ?? other.relevanceScore
    isMutable = isMutable || other.isMutable
    isContentAvailable = isContentAvailable || other.isContentAvailable
    custom += other.custom.filter { member in !custom.contains { Name($0.key) == Name(member.key) } }
  }

  /// The payload by the rules of APNs.
  var payload: [UInt8] {
    var json = JSONWriter()
    json.openObject()
    json.key("aps")
    json.openObject()
    if title != nil || subtitle != nil || body != nil {
      json.key("alert")
      json.openObject()
      if let title { json.member("title", title) }
      if let subtitle { json.member("subtitle", subtitle) }
      if let body { json.member("body", body) }
      json.closeObject()
    }
    if let badge { json.member("badge", badge) }
    if let sound { json.member("sound", sound) }
    if let category { json.member("category", category) }
    if let threadID { json.member("thread-id", threadID) }
    if let interruptionLevel { json.member("interruption-level", word: interruptionLevel.word) }
    if let relevanceScore {
      json.key("relevance-score")
      "\(relevanceScore)".utf8.withContiguousStorageIfAvailable { json.raw(UnsafeRawBufferPointer($0)) }
    }
    if isMutable { json.member("mutable-content", 1) }
    if isContentAvailable { json.member("content-available", 1) }
    json.closeObject()
    for member in custom {
      json.key(text: member.key)
      member.value.withUnsafeBytes { json.raw($0) }
    }
    json.closeObject()
    return json.withUnsafeBytes { Array($0) }
  }
}

/// A member of the payload beside `aps`.
package struct CustomMember: Sendable, Equatable {
  /// Its name.
  let key: String
  /// Valid JSON text.
  let value: [UInt8]

  /// Makes a member of its parts.
  init(key: String, value: [UInt8]) {
    self.key = key
    self.value = value
  }

  /// Reads `KEY=JSON`; nil for another form, or for `aps`.
  package init?(_ text: String) {
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex else { return nil }
    key = String(text[..<equals])
    value = Array(text[text.index(after: equals)...].utf8)
    guard key != "aps", value.withUnsafeBytes({ (try? JSONValue(parsing: $0)) != nil }) else { return nil }
  }

  /// The form `KEY=JSON`.
  package var text: String { "\(key)=\(String(decoding: value, as: UTF8.self))" }
}

extension NotificationID {
  /// Makes a random UUID of version 4 (RFC 9562).
  package static func random() -> NotificationID {
    NotificationID(
      high: UInt64.random(in: .min ... .max) & 0xFFFF_FFFF_FFFF_0FFF | 0x4000,
      low: UInt64.random(in: .min ... .max) & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }
}
