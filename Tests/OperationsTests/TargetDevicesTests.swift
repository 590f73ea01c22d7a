import Notifications
import Testing

@testable import Operations

/// The applications that the targets of requests have devices for, as the registry's records tell them.
@Suite struct TargetDevicesTests {
  private var registered = TargetDevices(of: ["user:Kim", "device:d2"])

  private mutating func register(_ token: Name, _ application: String, user: String?) {
    let user = user.map { #","user":"\#($0)""# } ?? ""
    #"{"device":"\#(token)","application":"\#(application)"\#(user),"since":1}"#.withBytes { registered.take(token, registration: $0) }
  }

  private func counts(_ target: Name) -> [String] { registered.applications(of: target).map { "\($0) \($1)" }.sorted() }

  @Test mutating func `each application of a person is told with its devices`() {
    register("d1", "b", user: "Kim")
    register("d2", "a", user: "Kim")
    register("d3", "b", user: "Kim")
    // Another person, whose name only looks alike, and nobody.
    register("d4", "c", user: "\u{212A}im")
    register("d5", "c", user: nil)
    #expect(counts("user:Kim") == ["a 1", "b 2"])
    #expect(counts("device:d2") == ["a 1"])
    #expect(counts("user:\u{212A}im").isEmpty, "nobody asked for it")
  }

  @Test mutating func `the newest record of a device counts`() {
    register("d1", "b", user: "Kim")
    register("d1", "a", user: "Kim")
    #expect(counts("user:Kim") == ["a 1"])
    register("d1", "a", user: "Bo")
    #expect(counts("user:Kim").isEmpty)
    register("d2", "a", user: "Kim")
    registered.take("d2", registration: nil)
    #expect(counts("user:Kim").isEmpty && counts("device:d2").isEmpty)
    "[]".withBytes { registered.take("d2", registration: $0) }
    #expect(counts("device:d2").isEmpty)
  }
}
