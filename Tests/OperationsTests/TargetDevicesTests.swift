import Notifications
import Testing

@testable import Operations

/// The devices of targets, as the registry's records tell them.
@Suite struct TargetDevicesTests {
  private var registered = TargetDevices(of: ["user:Kim", "device:d2"])

  private mutating func register(_ token: Name, _ application: String, user: String?) {
    let user = user.map { #","user":"\#($0)""# } ?? ""
    #"{"device":"\#(token)","application":"\#(application)"\#(user),"since":1}"#.withBytes { registered.take(token, registration: $0) }
  }

  private func applications(_ target: Name) -> [Name] { registered[target].values.sorted() }

  @Test mutating func `each device of a person is told with its application`() {
    register("d1", "b", user: "Kim")
    register("d2", "a", user: "Kim")
    register("d3", "b", user: "Kim")
    // Another person, whose name only looks alike, and nobody.
    register("d4", "c", user: "\u{212A}im")
    register("d5", "c", user: nil)
    #expect(applications("user:Kim") == ["a", "b", "b"])
    #expect(applications("device:d2") == ["a"])
    #expect(applications("user:\u{212A}im").isEmpty, "nobody asked for it")
  }

  @Test mutating func `the newest record of a device counts`() {
    register("d1", "b", user: "Kim")
    register("d1", "a", user: "Kim")
    #expect(applications("user:Kim") == ["a"])
    register("d1", "a", user: "Bo")
    #expect(applications("user:Kim").isEmpty)
    register("d2", "a", user: "Kim")
    registered.take("d2", registration: nil)
    #expect(applications("user:Kim").isEmpty && applications("device:d2").isEmpty)
    "[]".withBytes { registered.take("d2", registration: $0) }
    #expect(applications("device:d2").isEmpty)
  }
}
