import JSON
import Notifications
import Store

/// Publishes a device's registration to Kafka, then applies it to Redis, and ends mailbox entries of a former owner.
final class Registrar {
  private let events: EventProducer
  private let registrations: Registrations
  private let mailboxes: Mailboxes
  private let awaited: AwaitedEvents
  /// Registrations that wait for Kafka.
  private var underWay = 0
  /// Maximum number of waiting registrations.
  private static let maximum = 1024
  /// How many entries of a mailbox are ended at a time.
  private static let purgePage = 100

  init(_ events: EventProducer, _ registrations: Registrations, _ mailboxes: Mailboxes, _ awaited: AwaitedEvents) {
    (self.events, self.registrations, self.mailboxes, self.awaited) = (events, registrations, mailboxes, awaited)
  }

  /// Publishes a registration, and applies it when Kafka has it: in the device's hash, its person's set and its mailbox.
  func register(_ registration: Registration, emitting type: Outcome = .registered) async throws {
    try begin()
    defer { underWay -= 1 }
    let token = registration.device.text
    var json = JSONWriter(capacity: 512)
    registration.write(to: &json)
    let value = json.withUnsafeBytes { Array($0) }
    let position = try await events.publish(value, of: token)
    let record = Registrations.Record(token: token, registration, partition: position.partition, offset: position.offset)
    guard case .applied(let former) = try await registrations.apply(record) else { return }
    let owner = Owner(registration)
    if let former, !former.isSame(as: owner) { try await purge(token, keeping: owner) }
    emit(type, registration, value, position)
  }

  /// Publishes the end of a device's registration, and applies it when Kafka has it.
  ///
  /// - Parameter former: the device's last registration.
  func unregister(_ former: Registration) async throws {
    try begin()
    defer { underWay -= 1 }
    let token = former.device.text
    let position = try await events.publish(nil, of: token)
    let record = Registrations.Record(token: token, nil, partition: position.partition, offset: position.offset)
    guard case .applied = try await registrations.apply(record) else { return }
    try await purge(token, keeping: nil)
    emit(.unregisteredDevice, former, [], position)
  }

  /// Publishes a person's settings for all of their devices. Every lane reads them from Kafka, including this one.
  func set(_ settings: PersonSettings, of user: Name) async throws {
    try begin()
    defer { underWay -= 1 }
    try await events.publish(person: settings.value, of: user)
  }

  private func begin() throws {
    guard underWay < Self.maximum else { throw Overload(limit: .registrations) }
    underWay += 1
  }

  /// Removes entries from the mailbox that are not for its owner (all, for nil), after Kafka has their events.
  private func purge(_ token: String, keeping owner: Owner?) async throws(StoreError) {
    // Entries that stay come before the next page.
    var staying = 0
    while true {
      let page = try await ended(of: token, skipping: staying, keeping: owner)
      let (gone, isComplete) = await end(page.ended, token, keeping: owner)
      staying += page.count - gone.count
      if !gone.isEmpty {
        let error = await withCheckedContinuation { continuation in
          mailboxes.delete(gone, of: token) { continuation.resume(returning: $0) }
        }
        if let error { throw error }
      }
      // An entry stays if Kafka does not have its event. The next page would fail, too.
      guard isComplete, page.count == Self.purgePage else { return }
    }
  }

  /// An entry of a mailbox that is not for its owner.
  private struct EndedEntry {
    let revision: Revision
    let bytes: [UInt8]
  }

  /// How many entries a page of the mailbox has, and those that are not for its owner (all, for nil).
  private func ended(
    of token: String, skipping skipped: Int, keeping owner: Owner?
  ) async throws(StoreError) -> (count: Int, ended: [EndedEntry]) {
    let answer = await withCheckedContinuation { continuation in
      mailboxes.page(of: token, count: Self.purgePage, skipping: skipped) { answer in
        let found = answer.map { page in
          var ended: [EndedEntry] = []
          _ = page.forEach { revision, entry, bytes in
            if owner?.takes(entry) != true { ended.append(EndedEntry(revision: revision, bytes: Array(bytes))) }
          }
          return (count: page.count, ended: ended)
        }
        continuation.resume(returning: found)
      }
    }
    return try answer.get()
  }

  /// Emits the ends of entries. Returns the revisions of those whose events Kafka has, and whether these are all.
  private func end(_ ended: [EndedEntry], _ token: String, keeping owner: Owner?) async -> (gone: [Revision], isComplete: Bool) {
    let failed = await awaited.emit(ended.count) { number, purpose in
      ended[number].bytes.withUnsafeBytes { bytes -> Bool in
        guard let view = DeliveryEntryView(bytes) else { return false }
        var device = token
        return device.withUTF8 { device in
          let device = UnsafeRawBufferPointer(device)
          var facts = EventFacts(owner == nil ? .unregistered : .filtered, of: view, device: device, revision: ended[number].revision)
          if let owner { facts.details = .reason(owner.reasonAgainst(view)) }
          return events.emit(facts, key: device, for: purpose)
        }
      }
    }
    return (ended.indices.filter { !failed.contains($0) }.map { ended[$0].revision }, failed.isEmpty)
  }

  /// Emits that a device's registration has changed.
  private func emit(_ type: Outcome, _ registration: Registration, _ json: [UInt8], _ position: (partition: Int32, offset: Int64)) {
    let user = registration.user?.text ?? ""
    let discriminator = "\(position.partition)/\(position.offset)"
    withBytes(of: registration.device.text, registration.application.text, user, discriminator) { texts in
      json.withUnsafeBytes { json in
        var facts = EventFacts(type)
        (facts.device, facts.application, facts.user, facts.discriminator) = (texts[0], texts[1], texts[2], texts[3])
        facts.details = .registration(json)
        // If Kafka's queue has no room for the device event, it is dropped: Kafka has the registration itself.
        _ = events.emit(facts, key: facts.device, for: .nothing)
      }
    }
  }
}
