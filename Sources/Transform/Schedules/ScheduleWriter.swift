import JSON
import Kafka
import Notifications
import Worker

/// Writes the states of schedules to `schedule`, and firings to `requests`.
final class ScheduleWriter {
  private let producers: LaneProducers
  private let schedule: ProducerTopic
  private let requests: ProducerTopic
  private let expiration: ExpirationRule
  private let headers = RecordHeaders()
  private var buffer = ByteBuffer(capacity: 8192)
  private var json = JSONWriter()

  init(_ producers: LaneProducers, _ topics: Topics, _ expiration: ExpirationRule) throws(KafkaError) {
    (self.producers, self.expiration) = (producers, expiration)
    schedule = try producers.patient.topic(topics.schedule)
    requests = try producers.prompt.topic(topics.requests)
  }

  /// Writes the state of a schedule. Returns whether a report will come.
  func write(_ record: ScheduleRecord, of key: ScheduleKey, _ purpose: OutcomePurpose) -> Bool {
    buffer.reset()
    guard (try? record.append(to: &buffer)) != nil else { return false }
    let outcome = key.bytes.withUnsafeBytes { key in
      buffer.withUnsafeBytes { producers.patient.produce(schedule, key: key, value: $0, opaque: purpose.opaque) }
    }
    if case .taken = outcome { return true }
    return false
  }

  /// Writes the tombstone of a schedule. Returns whether a report will come.
  func forget(_ key: ScheduleKey, _ purpose: OutcomePurpose) -> Bool {
    let outcome = key.bytes.withUnsafeBytes { producers.patient.produce(schedule, key: $0, value: nil, opaque: purpose.opaque) }
    if case .taken = outcome { return true }
    return false
  }

  /// Writes the firing of a due time. Returns whether a report will come.
  ///
  /// The firing goes into the partition of the request that scheduled it. It is a request of its own: it has the schedule's identifier, and
  /// the occurrence's apns-id and expiration.
  func fire(
    _ time: ScheduleRecord.Pending.DueTime, of key: ScheduleKey, _ record: ScheduleRecord, _ pending: ScheduleRecord.Pending, now: Int64,
    _ purpose: OutcomePurpose
  ) -> Bool {
    let firing = FiringHeader(schedule: record.newest, time, owner: pending.owner, repeats: pending.timedTrigger?.repeats ?? false)
    headers.removeAll()
    headers.append(RequestHeader.target.name, text: key.target.text)
    headers.append(RequestHeader.id.name, text: firing.occurrence.description)
    headers.append(RequestHeader.collapseID.name, text: key.identifier.text)
    for header in pending.headers(of: time, oneAttempt: expiration.oneAttemptSeconds * 1000) {
      header.value.withUnsafeBytes { headers.append(header.name.text, $0) }
    }
    append(firing)
    return pending.payload.withUnsafeBytes { produce($0, key, to: record.newest.revision.sourcePartition, now: now, purpose) }
  }

  /// Writes a firing of no occurrence, which adapts the schedule to its devices' zones. Returns whether a report will come.
  ///
  /// - Parameter zone: a zone of one of the devices.
  func adapt(_ key: ScheduleKey, _ record: ScheduleRecord, to zone: Name, now: Int64, _ purpose: OutcomePurpose) -> Bool {
    let firing = FiringHeader(schedule: record.newest, .init(zone: zone, due: 0, name: 0))
    headers.removeAll()
    headers.append(RequestHeader.target.name, text: key.target.text)
    headers.append(RequestHeader.topic.name, text: key.application.text)
    headers.append(RequestHeader.id.name, text: firing.occurrence.description)
    headers.append(RequestHeader.collapseID.name, text: key.identifier.text)
    headers.append(RequestHeader.priority.name, text: "5")
    headers.append(RequestHeader.pushType.name, text: PushType.background.name.description)
    append(firing)
    return Array(#"{"aps":{"content-available":1}}"#.utf8).withUnsafeBytes {
      produce($0, key, to: record.newest.revision.sourcePartition, now: now, purpose)
    }
  }

  /// Writes the removal of a location request from its devices. Returns whether a report will come.
  ///
  /// It removes nothing newer. It goes into the partition of the location request, so that the lane judges it later.
  ///
  /// - Parameter newer: the request that cancels or replaces the location request.
  func withdraw(_ placed: JournalReference, of key: ScheduleKey, by newer: NotificationID, _ purpose: OutcomePurpose) -> Bool {
    headers.removeAll()
    headers.append(RequestHeader.target.name, text: key.target.text)
    headers.append(RequestHeader.topic.name, text: key.application.text)
    // A cancel of all may withdraw several, so each removal needs an apns-id of its own.
    let id = (Array(RequestHeader.trigger.name.description.utf8) + Array(key.identifier.utf8)).withUnsafeBytes { newer.derived($0) }
    headers.append(RequestHeader.id.name, text: id.description)
    headers.append(RequestHeader.operation.name, text: "remove")
    json.reset()
    json.openObject()
    json.key("identifiers")
    json.openArray()
    key.identifier.withBytes { json.string(utf8: $0) }
    json.closeArray()
    json.member("notNewerThan", placed.revision.description)
    json.member("scope", "pending")
    json.closeObject()
    return json.withUnsafeBytes { produce($0, key, to: placed.revision.sourcePartition, purpose) }
  }

  private func append(_ firing: FiringHeader) {
    json.reset()
    firing.write(to: &json)
    json.withUnsafeBytes { headers.append(RequestHeader.firing.name, $0) }
  }

  private func produce(
    _ payload: UnsafeRawBufferPointer, _ key: ScheduleKey, to partition: UInt32, now: Int64? = nil, _ purpose: OutcomePurpose
  ) -> Bool {
    let outcome = Array(key.target.utf8).withUnsafeBytes { target in
      producers.prompt.produce(
        requests, partition: Int32(partition), key: target, value: payload, headers: headers, timestamp: now,
        opaque: purpose.opaque)
    }
    if case .taken = outcome { return true }
    return false
  }
}
