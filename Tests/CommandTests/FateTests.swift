import Notifications
import Testing

@testable import Command
@testable import Ingress
@testable import Operations

/// What a publisher reads of a request.
@Suite struct FateTests {
  @Test func aFateIsOfAllApplicationsThatItNames() {
    let (own, other): (Name, Name) = ("com.example.shop", "com.example.other")
    var occurrence = Explanation(id: NotificationID(high: 1, low: 2))
    occurrence.applications = [other]
    var request = Explanation(id: NotificationID(high: 1, low: 1))
    request.applications = [own]
    request.registered = [own: 1, "com.example.third": 2]
    request.schedule = ScheduleExplanation()
    request.schedule?.occurrences = [occurrence]
    let fate = Fate(request, TimelinePrinter(prefix: ""))
    #expect(fate.applications == Set([own, other]))
    #expect(fate.json.contains("com.example.shop") && !fate.json.contains("com.example.third"), "\(fate.json)")
  }
}
