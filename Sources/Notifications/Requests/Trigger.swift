internal import JSON

/// When or where a notification is due, as in the header `trigger`.
///
///     {"type": "push"}                                                     now, the same as no trigger
///     {"type": "location", "repeats": false, "region": {"identifier": "shop", "latitude": 52.5, "longitude": 13.4,
///       "radius": 100, "notifyOnEntry": true, "notifyOnExit": false}}      the device evaluates it
///     {"type": "location", "beacon": {"identifier": "till", "uuid": "…", "major": 1, "minor": 2}}
///     {"type": "timeInterval", …}, {"type": "calendar", …}                 at a time: ``TimedTrigger``
public enum Trigger: Sendable, Hashable {
  /// Now.
  case push
  /// At a location, which the device evaluates.
  case location
  /// At a time.
  case timed(TimedTrigger)

  /// Reads and checks a trigger.
  public init(_ header: UnsafeRawBufferPointer) throws(Rejection) {
    guard header.count <= RequestLimits.triggerBytes else {
      throw Rejection(.badRequestParams, field: "trigger", rule: "A trigger takes at most \(RequestLimits.triggerBytes) bytes.")
    }
    do {
      self = try Self.read(header)
    } catch let rejection as Rejection {
      throw rejection
    } catch {
      throw Rejection(
        .badRequestParams, field: "trigger", error, rule: "A trigger is a JSON object by RFC 8259.",
        tooDeep: "In a trigger at most 8 objects and arrays lie inside one another.")
    }
  }

  private static func read(_ header: UnsafeRawBufferPointer) throws -> Trigger {
    let start = JSONScanner(header, depthLimit: RequestLimits.triggerDepth)
    var scanner = start
    var type: JSONSpan?
    var repeats: JSONSpan?
    var places: [(span: JSONSpan, isBeacon: Bool)] = []
    var count = 0
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      count += 1
      if scanner.matches(key, "type") {
        if type != nil { throw wrong("trigger.type", "A trigger has one type.") }
        type = value
      } else if scanner.matches(key, "repeats") {
        repeats = value
      } else if scanner.matches(key, "region") {
        places.append((value, false))
      } else if scanner.matches(key, "beacon") {
        places.append((value, true))
      }
    }
    try scanner.finish()
    if let type {
      if scanner.matches(type, "push") {
        // A time that was meant must not be ignored.
        guard count == 1 else { throw wrong("trigger", "A trigger of the type push has no other member.") }
        return .push
      }
      if scanner.matches(type, "timeInterval") { return .timed(try TimedTrigger(interval: start)) }
      if scanner.matches(type, "calendar") { return .timed(try TimedTrigger(calendar: start)) }
      if scanner.matches(type, "location") {
        guard repeats.map({ scanner.bool($0) != nil }) ?? true else {
          throw wrong("trigger.repeats", "Whether a trigger repeats is true or false.")
        }
        guard let place = places.first, places.count == 1 else {
          throw wrong("trigger.region", "A location trigger has a region or a beacon, and one of them.")
        }
        guard count == (repeats == nil ? 2 : 3) else {
          throw wrong("trigger", "A location trigger has a type, a region or a beacon, repeats, and no other member.")
        }
        try checkPlace(scanner.scanner(of: place.span), isBeacon: place.isBeacon)
        return .location
      }
    }
    throw wrong("trigger.type", "A trigger's type is push, timeInterval, calendar or location.")
  }

  private static func checkPlace(_ place: JSONScanner, isBeacon: Bool) throws {
    var scanner = place
    guard scanner.peekKind() == .object else { throw wrong("trigger.region", "A region or a beacon is an object.") }
    var hasIdentifier = false
    var isNotified = false
    var isSilenced = false
    var numbers: (latitude: Double?, longitude: Double?, radius: Double?) = (nil, nil, nil)
    var hasUUID = false
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      if scanner.matches(key, "identifier") {
        hasIdentifier = value.kind == .string && value.count > 2 && value.count <= 258
      } else if scanner.matches(key, "notifyOnEntry") || scanner.matches(key, "notifyOnExit") {
        guard let flag = scanner.bool(value) else { throw wrong("trigger.region", "notifyOnEntry and notifyOnExit are true or false.") }
        if flag { isNotified = true } else { isSilenced = scanner.matches(key, "notifyOnEntry") || isSilenced }
      } else if !isBeacon, scanner.matches(key, "latitude") {
        numbers.latitude = scanner.double(value)
      } else if !isBeacon, scanner.matches(key, "longitude") {
        numbers.longitude = scanner.double(value)
      } else if !isBeacon, scanner.matches(key, "radius") {
        numbers.radius = scanner.double(value)
      } else if isBeacon, scanner.matches(key, "uuid") {
        hasUUID = scanner.unescapedBytes(value).map { $0.count == 36 } ?? false
      } else if isBeacon, scanner.matches(key, "major") || scanner.matches(key, "minor") {
        guard let number = scanner.integer(value), number >= 0, number <= 65_535 else {
          throw wrong("trigger.beacon", "A beacon's major and minor are integers from 0 to 65535.")
        }
      } else {
        // A misspelt member must not change where or how often a person is notified.
        let members =
          isBeacon ? "A beacon has an identifier, a uuid, major, minor" : "A region has an identifier, latitude, longitude, radius"
        throw wrong(isBeacon ? "trigger.beacon" : "trigger.region", members + ", notifyOnEntry, notifyOnExit, and no other member.")
      }
    }
    // Entry is notified unless notifyOnEntry is false.
    guard isNotified || !isSilenced else {
      throw wrong("trigger.region", "A location trigger notifies on entry, on exit, or on both.")
    }
    guard hasIdentifier else { throw wrong("trigger.region.identifier", "A region has an identifier, a string of 1 to 256 bytes.") }
    if isBeacon {
      guard hasUUID else { throw wrong("trigger.beacon.uuid", "A beacon has a uuid, as text of 36 characters.") }
      return
    }
    guard let latitude = numbers.latitude, abs(latitude) <= 90, let longitude = numbers.longitude, abs(longitude) <= 180 else {
      throw wrong("trigger.region", "A region has a latitude from -90 to 90 and a longitude from -180 to 180, in degrees.")
    }
    guard let radius = numbers.radius, radius > 0 else {
      throw wrong("trigger.region.radius", "A region has a radius above 0, in metres.")
    }
  }

  private static func wrong(_ field: StaticString, _ rule: String) -> Rejection {
    Rejection(.badRequestParams, field: field, rule: rule)
  }
}
