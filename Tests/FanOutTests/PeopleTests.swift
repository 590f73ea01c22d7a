import Notifications
import Testing

@testable import FanOut

/// What a lane knows of the people's quiet hours.
@Suite struct PeopleTests {
  private static let midday: Int64 = 1_795_694_400_000

  private static func take(_ user: String, _ value: String?, into people: People) -> String? {
    var user = user
    return user.withUTF8 { key in
      guard var value else { return people.take(key: UnsafeRawBufferPointer(key), value: nil) }
      return value.withUTF8 { people.take(key: UnsafeRawBufferPointer(key), value: UnsafeRawBufferPointer($0)) }
    }
  }

  private static func hours(_ from: String, _ to: String, _ zone: String = "UTC") -> String {
    #"{"quiet":{"from":"\#(from)","to":"\#(to)","timeZone":"\#(zone)"}}"#
  }

  private static func hash(_ user: Name) -> UInt64 { NameHash.user(user) }

  @Test func `the newest record of a person counts, and one that cannot be read changes nothing`() {
    let people = People(topic: "people")
    #expect(!people.isQuiet(Self.hash("ada"), now: Self.midday))
    #expect(Self.take("ada", Self.hours("11:00", "13:00"), into: people) == nil)
    #expect(people.isQuiet(Self.hash("ada"), now: Self.midday) && !people.isQuiet(Self.hash("bob"), now: Self.midday))
    #expect(!people.isQuiet(0, now: Self.midday), "nobody is a person")
    for wrong in ["{", #"{"quiet":{}}"#, Self.hours("11:00", "13:00", "Moon/Tycho"), String(repeating: " ", count: 5_000)] {
      #expect(Self.take("ada", wrong, into: people) != nil)
    }
    #expect(people.quiet(Self.hash("ada")) == QuietHours(from: 660, to: 780, timeZone: "UTC"))
    #expect(Self.take("ada", Self.hours("13:00", "14:00"), into: people) == nil)
    #expect(!people.isQuiet(Self.hash("ada"), now: Self.midday), "the answer to the former hours is forgotten")
    #expect(Self.take("ada", nil, into: people) == nil)
    #expect(people.quiet(Self.hash("ada")) == nil)
    #expect(people.take(key: nil, value: nil) != nil)
  }

  @Test func `an answer holds until the hours begin or end`() {
    let people = People(topic: "people")
    #expect(Self.take("ada", Self.hours("12:30", "13:00"), into: people) == nil)
    for minute in 0..<120 as Range<Int64> {
      let isQuiet = people.isQuiet(Self.hash("ada"), now: Self.midday + minute * 60_000)
      #expect(isQuiet == (30..<60).contains(minute), "\(minute)")
    }
    people.forget()
    #expect(people.quiet(Self.hash("ada")) == nil)
  }
}
