import Calendars
import Kafka
import Notifications
import Worker

/// The quiet hours of all people, from the records of `notifications.people`.
///
/// Each lane knows all people who have set quiet hours, with some 40 bytes for each. So a session finds those of its person at once.
final class People: FollowedTable {
  /// Maximum number of people with quiet hours.
  static let maximum = 1_000_000

  private struct Person {
    let from: UInt16
    let to: UInt16
    let days: UInt8
    /// The index of the zone's name.
    let zone: UInt16
    /// Until when the last answer holds, in milliseconds since 1970, negated if it was "quiet". 0: there is no answer yet.
    var until: Int64 = 0
  }

  let topic: String
  /// By the name hashes of the people.
  private var people: [UInt64: Person] = [:]
  private var zones: [String] = []
  private var zoneIndexes: [String: UInt16] = [:]
  private var calendar = QuietCalendar()

  init(topic: String) { self.topic = topic }

  func take(_ record: RecordView) -> String? { take(key: record.key, value: record.value) }

  /// Takes a record: the settings of a person, or that they have none.
  func take(key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?) -> String? {
    guard let key, !key.isEmpty else { return "The key of a record is a user." }
    let user = NameHash.user(key)
    do throws(FieldError) {
      guard let value, let quiet = try PersonSettings(json: value).quiet else {
        people[user] = nil
        return nil
      }
      guard people[user] != nil || people.count < Self.maximum else {
        return "There are more than \(Self.maximum) people with quiet hours."
      }
      guard let zone = index(ofZone: quiet.timeZone) else { return "quiet.timeZone: No such zone is known here." }
      people[user] = Person(from: UInt16(quiet.from), to: UInt16(quiet.to), days: quiet.days, zone: zone)
      return nil
    } catch {
      return "\(error)"
    }
  }

  func forget() { people = [:] }

  private func index(ofZone name: String) -> UInt16? {
    if let index = zoneIndexes[name] { return index }
    guard QuietCalendar.isZone(name), let index = UInt16(exactly: zones.count) else { return nil }
    zones.append(name)
    zoneIndexes[name] = index
    return index
  }

  /// Whether it is quiet for a person now.
  ///
  /// Nearly always that is one look-up and a comparison: the calendar is asked when the last answer is over.
  ///
  /// - Parameters:
  ///   - user: the name hash; 0 for nobody.
  ///   - now: milliseconds since 1970.
  func isQuiet(_ user: UInt64, now: Int64) -> Bool {
    guard user != 0, !people.isEmpty, let person = people[user] else { return false }
    if now < abs(person.until) { return person.until < 0 }
    guard let answer = calendar.answer(for: hours(person), at: now) else { return false }
    people[user]?.until = answer.isQuiet ? -answer.until : answer.until
    return answer.isQuiet
  }

  /// The quiet hours of a person, if there are any.
  func quiet(_ user: UInt64) -> QuietHours? { people[user].map(hours) }

  private func hours(_ person: Person) -> QuietHours {
    QuietHours(from: Int(person.from), to: Int(person.to), days: person.days, timeZone: zones[Int(person.zone)])
  }
}
