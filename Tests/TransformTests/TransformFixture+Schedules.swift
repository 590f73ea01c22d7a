import JSON
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Transform

/// Schedules of a fixture, and firings that come before their time.
extension TransformFixture {
  /// A trigger that is due in an hour, and each hour after that if it repeats.
  static func hourly(repeats: Bool) -> String { #"{"type":"timeInterval","timeInterval":3600,"repeats":\#(repeats)}"# }

  /// Publishes a request with a trigger. Its collapse id is the schedule's identifier.
  func schedule(
    _ target: String, _ identifier: String, _ trigger: String = hourly(repeats: false), timestamp: Int64? = nil, id: String? = nil
  )
    async throws
  {
    var headers: [TestRecord.Header] = [
      .init("target", target), .init("apns-topic", Self.application), .init("apns-collapse-id", identifier), .init("trigger", trigger),
    ]
    if let id { headers.append(.init("apns-id", id)) }
    try await kafka.publish(
      [TestRecord(key: target, #"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0, timestamp: timestamp)], to: topics.requests)
  }

  /// The states of schedules that the topic has, in their order.
  func schedules() async throws -> [(key: ScheduleKey, state: ScheduleRecord)] {
    let count = try await kafka.admin.ends(of: [TopicPartition(topics.schedule, 0)]).values.first?.count ?? 0
    return try await kafka.records(of: topics.schedule, count: count).compactMap { record in
      guard let key = record.key?.withUnsafeBytes({ ScheduleKey($0) }), let state = record.value?.withUnsafeBytes({ ScheduleRecord($0) })
      else { return nil }
      return (key, state)
    }
  }

  /// The newest state of a schedule in the topic.
  func state(of identifier: Name) async throws -> ScheduleRecord? {
    try await schedules().last { $0.key.identifier == identifier }?.state
  }

  /// Publishes the firing of the next occurrence of a schedule, with the time at which that is due.
  func fire(
    _ identifier: Name, payload: String = #"{"aps":{"alert":"x"}}"#, _ change: @Sendable (inout [TestRecord.Header]) -> Void = { _ in }
  ) async throws {
    let (key, state) = try #require(try await schedules().last { $0.key.identifier == identifier })
    let pending = try #require(state.pending)
    let time = try #require(pending.earliest)
    try await fire(
      FiringHeader(schedule: state.newest, time, owner: pending.owner, repeats: pending.timedTrigger?.repeats ?? false), key.target.text,
      key.identifier.text,
      until: time.due / 1000 + pending.lifetime, payload: payload, change)
  }

  /// Publishes the firings of a schedule in all its zones together, each with the time at which it is due.
  func fireInAllZones(_ identifier: Name) async throws {
    let (key, state) = try #require(try await schedules().last { $0.key.identifier == identifier })
    let pending = try #require(state.pending)
    let repeats = pending.timedTrigger?.repeats ?? false
    let records = pending.dueTimes.map { time in
      Self.record(
        of: FiringHeader(schedule: state.newest, time, owner: pending.owner, repeats: repeats), key.target.text, key.identifier.text,
        until: time.due / 1000 + pending.lifetime)
    }
    try await kafka.publish(records, to: topics.requests)
  }

  /// Publishes a firing, with the time at which its occurrence is due.
  ///
  /// - Parameter expiration: in seconds since 1970.
  func fire(
    _ firing: FiringHeader, _ target: String, _ identifier: String, until expiration: Int64, payload: String = #"{"aps":{"alert":"x"}}"#,
    _ change: @Sendable (inout [TestRecord.Header]) -> Void = { _ in }
  ) async throws {
    try await kafka.publish(
      [Self.record(of: firing, target, identifier, until: expiration, payload: payload, change)], to: topics.requests)
  }

  private static func record(
    of firing: FiringHeader, _ target: String, _ identifier: String, until expiration: Int64,
    payload: String = #"{"aps":{"alert":"x"}}"#, _ change: (inout [TestRecord.Header]) -> Void = { _ in }
  ) -> TestRecord {
    var json = JSONWriter()
    firing.write(to: &json)
    var headers: [TestRecord.Header] = [
      .init("target", target), .init("apns-topic", application), .init("apns-id", firing.occurrence.description),
      .init("apns-collapse-id", identifier), .init("apns-expiration", "\(expiration)"), .init("apns-priority", "10"),
      .init("apns-push-type", "alert"), .init("carillon-firing", json.text),
    ]
    change(&headers)
    return TestRecord(key: target, payload, headers: headers, partition: 0, timestamp: firing.dueTime.due)
  }
}
