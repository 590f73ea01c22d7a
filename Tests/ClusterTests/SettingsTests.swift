import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// What the person's settings make of notifications, with real processes and devices in Python.
  @Suite(.serialized, .inPython)
  struct SettingsTests {
    private let settings = Script(
      "settings.py", short: ["switches", "quiet", "categories", "granted"], ClusterTests.contract)

    @Test(arguments: ClusterKafka.ofForm)
    func `each switch decides what is shown of a notification when it is handed over`(_ kafka: ClusterKafka) async throws {
      try await settings.holds("switches", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `quiet hours hold for all devices of a person, on all workers`(_ kafka: ClusterKafka) async throws {
      try await settings.holds("quiet", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `a response is checked by the category as it was when its notification was delivered`(_ kafka: ClusterKafka) async throws {
      try await settings.holds("categories", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `critical and time-sensitive notifications count as active until their application is allowed them`(_ kafka: ClusterKafka)
      async throws
    { try await settings.holds("granted", on: kafka) }
  }
}
