/// The rules of each header.
enum HeaderRules {
  static func topic(_ header: UnsafeRawBufferPointer?) throws(Rejection) -> UnsafeRawBufferPointer {
    guard let header else {
      throw Rejection(.missingTopic, field: "apns-topic", rule: "A request names its application in apns-topic.")
    }
    guard ApplicationTopic.isValid(header) else {
      throw Rejection(.badTopic, field: "apns-topic", rule: "A topic is 1 to 255 letters, digits, full stops, hyphens and underscores.")
    }
    return header
  }

  static func checkCollapseID(_ header: UnsafeRawBufferPointer?) throws(Rejection) {
    guard let header else { return }
    guard !header.isEmpty, header.count <= RequestLimits.identifierBytes, header.isPlainText else {
      throw Rejection(
        .badCollapseID, field: "apns-collapse-id", rule: "A collapse id is 1 to 64 bytes of UTF-8 without control characters.")
    }
  }

  static func priority(_ header: UnsafeRawBufferPointer?) throws(Rejection) -> UInt8? {
    guard let header else { return nil }
    if header.equals("10") { return 10 }
    if header.equals("5") { return 5 }
    if header.equals("1") { return 1 }
    throw Rejection(.badPriority, field: "apns-priority", rule: "A priority is 10, 5 or 1.")
  }

  static func pushType(_ header: UnsafeRawBufferPointer?) throws(Rejection) -> PushType? {
    guard let header else { return nil }
    guard let type = PushType(name: header) else {
      throw Rejection(
        .invalidPushType, field: "apns-push-type",
        rule:
          "A push type is alert, background, controls, complication, fileprovider, liveactivity, location, mdm, pushtotalk, voip or widgets."
      )
    }
    return type
  }

  /// Checks the priority of a background push: 5, or absent.
  static func checkBackground(_ priority: UInt8?) throws(Rejection) {
    guard priority == nil || priority == 5 else {
      throw Rejection(.badPriority, field: "apns-priority", rule: "A background push has priority 5.")
    }
  }

  /// - Parameter published: the start of the lifetime, in milliseconds.
  static func expiration(_ header: UnsafeRawBufferPointer?, published: Int64, _ limits: RequestLimits) throws(Rejection) -> Int64 {
    let latest = published / 1000 + limits.longestLifetime
    guard let header else { return latest }
    guard !header.isEmpty, header.count <= 19 else { throw badExpiration }
    // As many digits fit into 64 bits without a sign.
    var seconds: UInt64 = 0
    for byte in header {
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 else { throw badExpiration }
      seconds = seconds &* 10 &+ UInt64(digit)
    }
    guard let seconds = Int64(exactly: seconds) else { throw badExpiration }
    return min(seconds, latest)
  }

  private static var badExpiration: Rejection {
    Rejection(
      .badExpirationDate, field: "apns-expiration", rule: "An expiration is a time in whole seconds since 1970, or 0 for one attempt.")
  }

  static func target(_ header: UnsafeRawBufferPointer?, key: UnsafeRawBufferPointer) throws(Rejection) -> Target {
    let text = header ?? key
    guard !text.isEmpty else {
      throw Rejection(
        .missingDeviceToken, field: "target",
        rule: "A request has a target, in the header target or as its record key: \(Target.forms).")
    }
    return try Target.read(text, field: header == nil ? "key" : "target")
  }

  static func operation(_ header: UnsafeRawBufferPointer?) throws(Rejection) -> RequestView.Operation {
    guard let header else { return .notify }
    if header.equals("notify") { return .notify }
    if header.equals("remove") { return .remove }
    if header.equals("cancel") { return .cancel }
    throw Rejection(.badRequestParams, field: "operation", rule: "An operation is notify, cancel or remove.")
  }

  /// Reads whether opening the notification on one device removes it from the person's others.
  static func removesWhenOpened(_ header: UnsafeRawBufferPointer?, _ operation: RequestView.Operation, _ target: Target) throws(Rejection)
    -> Bool
  {
    guard let header else { return false }
    guard header.equals("remove") else {
      throw Rejection(.badRequestParams, field: "when-opened", rule: "The only value of when-opened is remove.")
    }
    guard operation == .notify, target.user != nil else {
      throw Rejection(.badRequestParams, field: "when-opened", rule: "Only a notification for a person, user:<id>, has when-opened.")
    }
    return true
  }

  /// Reads when a request is due.
  static func timing(_ headers: RequestHeaders, _ operation: RequestView.Operation) throws(Rejection) -> RequestView.Timing {
    if let firing = headers[.firing] { return .firing(try checked(firing, headers, operation)) }
    guard let trigger = headers[.trigger] else { return .now }
    guard operation == .notify else {
      throw Rejection(.badRequestParams, field: "trigger", rule: "Only a notification has a trigger.")
    }
    switch try Trigger(trigger) {
    case .push: return .now
    case .location: return .place(trigger)
    case .timed(let timed):
      // Only a new request is rejected for it: earlier releases have scheduled such triggers.
      if let late = timed.late, late < TimedTrigger.minimumLateSeconds * 1000 {
        throw Rejection(
          .badRequestParams, field: "trigger.late",
          rule: "Each occurrence fires some milliseconds late, so late is at least \(TimedTrigger.minimumLateSeconds) s.")
      }
      return .time(trigger)
    }
  }

  /// Reads and checks a firing: a notification with its schedule's identifier and its occurrence's apns-id.
  private static func checked(
    _ header: UnsafeRawBufferPointer, _ headers: RequestHeaders, _ operation: RequestView.Operation
  ) throws(Rejection) -> FiringHeader {
    let firing = try FiringHeader(header)
    guard operation == .notify, headers[.trigger] == nil, headers[.collapseID] != nil,
      headers[.id].flatMap(NotificationID.init(text:)) == firing.occurrence
    else {
      throw Rejection(
        .badRequestParams, field: "carillon-firing",
        rule: "A firing is a notification without a trigger, with a collapse id, and with the apns-id of its occurrence.")
    }
    return firing
  }
}
