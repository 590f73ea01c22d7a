import EventLoop
import Cryptography
import HTTP
import JSON
import Kafka
import Notifications
import Store
import Worker

/// From the hello to the welcome: credential, registration, presence, the former session, the first page.
extension FanOutCore {
  /// The hello's turn has come: its work waits for Redis and Kafka, so it is done by a task of the lane's actor.
  func performEntrance(_ generation: UInt64) async {
    var holdsPlace = true
    defer { if holdsPlace { entranceEnded() } }
    guard let session = sessions[generation], case .entering(let hello) = session.phase else { return }
    do {
      try await enter(session, hello, until: try expiration(of: hello), &holdsPlace)
    } catch let error as CredentialError {
      metrics.unauthorized.increment()
      session.close(.unauthorized, "\(error)")
    } catch let error as Overload {
      sendAway(session, at: error.limit)
    } catch {
      noticed(error)
      logger.warning("a device could not enter", ["error": "\(error)"])
      sendAway(session, .serviceUnavailable, comeBackAfter: gate.comeBack(now: loop.milliseconds(), atLeast: 2000))
    }
  }

  /// Unique among all sessions that there ever were.
  func newGeneration() -> UInt64 { RandomBytes.number() }

  /// When the hello's credential expires, in seconds since 1970; throws when it does not let the device in.
  private func expiration(of hello: Hello) throws(CredentialError) -> Int64 {
    guard case .credential(let key) = settings.admission else { return .max }
    guard let text = hello.credential else { throw .missing }
    let credential = try Credential(verifying: text, key: key, now: WallClock.seconds())
    guard credential.device == hello.device.text else { throw .another("device") }
    guard credential.application == hello.application else { throw .another("application") }
    guard credential.user == hello.user else { throw .another("user") }
    return credential.expiration
  }

  /// - Parameters:
  ///   - expiration: when the session ends with its credential, in seconds since 1970.
  ///   - holdsPlace: whether it has its place among the hellos that are worked on: those that wait for Kafka give it up, so that
  ///     devices whose registration stands still enter while Kafka is away.
  private func enter(_ session: Session, _ hello: Hello, until expiration: Int64, _ holdsPlace: inout Bool) async throws {
    let token = hello.device.text
    let presence = Presence(partition: partition, generation: session.generation)
    var registration = hello.registration(since: WallClock.milliseconds())
    var found = try await presences.enter(token, presence, digest: registration.digest)
    // Between the publication and this call another session of the device may have registered differently: the last hello wins.
    for _ in 0..<3 {
      guard case .otherRegistration(let standing) = found else { break }
      // What Redis may have lost is not published anew as if it were of today.
      guard watch.isRegistryWhole else { throw StoreError(.unavailable, "the registry is being restored") }
      if let standing, standing.isSame(as: Owner(registration)) {
        registration.since = Int64(clamping: standing.since)
      }
      if holdsPlace {
        holdsPlace = false
        entranceEnded()
      }
      try await register(registration)
      guard sessions[session.generation] != nil else { return }
      found = try await presences.enter(token, presence, digest: registration.digest)
    }
    guard case .present(let standing) = found else {
      throw StoreError(.unavailable, "the device's registration did not stand; another session may be registering it")
    }
    // The person's set lies in another bucket than the device: every hello makes sure of it.
    try await recipients.add(token, registration)
    if let former = standing.former, former.generation != session.generation { end(former, token) }
    guard sessions[session.generation] != nil else { return leave(token, session.generation) }
    registration.since = Int64(clamping: standing.owner.since)
    let open = OpenSession(
      token: token, registration: registration, owner: standing.owner, registeredAt: standing.registration.offset, expiration: expiration,
      epoch: shards.epoch,
      flow: SessionFlow(first: RandomBytes.number() >> 20, window: settings.window))
    welcome(session, open, gap: standing.gap)
  }

  /// Where Redis has lost what it had nothing is written to it before it was rebuilt.
  private func noticed(_ error: any Error) {
    if let error = error as? StoreError, error.code == .bucketLost { watch.lost() }
  }

  /// The device's former session ends: here, or by way of its lane's partition.
  private func end(_ former: Presence, _ token: String) {
    metrics.takeovers.increment()
    if let session = sessions[former.generation] { return session.close(.takenOver) }
    eventProducer?.takeOver(former, token: token)
  }

  private func welcome(_ session: Session, _ open: OpenSession, gap: MailboxGap?) {
    frames.reset()
    ServerFrames.welcome(
      session: session.generation, now: WallClock.milliseconds(), pingSeconds: settings.pingSeconds, window: settings.window,
      rememberSeconds: settings.longestLifetime, frameBytes: settings.frameBytes, userTextBytes: Registration.userTextBytes, to: &frames)
    session.connection?.send(frame())
    if let gap {
      frames.reset()
      ServerFrames.mailboxGap(from: gap.from, to: gap.to, to: &frames)
      session.connection?.send(frame())
      open.gap = gap
    }
    metrics.sessions.increment()
    watch(session)
    session.welcome(open)
  }

  // MARK: Registration

  /// Publishes a registration, and applies it when Kafka has it: in the device's hash, its person's set and its mailbox.
  func register(_ registration: Registration, saying type: EventType = .registered) async throws {
    guard let eventProducer else { return }
    guard registering < Self.mostRegistering else { throw Overload(limit: .registrations) }
    registering += 1
    defer { registering -= 1 }
    let token = registration.device.text
    var json = JSONWriter(capacity: 512)
    registration.write(to: &json)
    let value = json.withUnsafeBytes { Array($0) }
    let place = try await eventProducer.publish(value, of: token)
    let record = Registrations.Record(token: token, registration, partition: place.partition, offset: place.offset)
    guard case .applied(let former) = try await registrations.apply(record) else { return }
    let owner = Owner(registration)
    if let former, !former.isSame(as: owner) { try await purge(token, keeping: owner) }
    say(type, registration, value, place)
  }

  /// Removes from the mailbox what is not for its owner (all, for nil), after Kafka has its events.
  private func purge(_ token: String, keeping owner: Owner?) async throws(StoreError) {
    // What stays lies before the next page.
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
      // What Kafka does not have stays; the next page would fare no better.
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

  /// Says the end of entries; answers the revisions of those whose end Kafka has, and whether that is all of them.
  private func end(_ ended: [EndedEntry], _ token: String, keeping owner: Owner?) async -> (gone: [Revision], isComplete: Bool) {
    guard let eventProducer else { return ([], false) }
    let failed = await awaited.say(ended.count) { number, report in
      ended[number].bytes.withUnsafeBytes { bytes -> Bool in
        guard let view = DeliveryEntryView(bytes) else { return false }
        var device = token
        return device.withUTF8 { device in
          let device = UnsafeRawBufferPointer(device)
          var facts = EventFacts(owner == nil ? .unregistered : .filtered, of: view, device: device, revision: ended[number].revision)
          if let owner { facts.details = .reason(owner.reasonAgainst(view)) }
          return eventProducer.say(facts, key: device, token: report)
        }
      }
    }
    return (ended.indices.filter { !failed.contains($0) }.map { ended[$0].revision }, failed.isEmpty)
  }

  /// Tells that a device's registration has changed.
  func say(_ type: EventType, _ registration: Registration, _ json: [UInt8], _ place: (partition: Int32, offset: Int64)) {
    var (token, application, user) = (registration.device.text, registration.application, registration.user ?? "")
    token.withUTF8 { token in
      application.withUTF8 { application in
        user.withUTF8 { user in
          json.withUnsafeBytes { json in
            var facts = EventFacts(type)
            facts.device = UnsafeRawBufferPointer(token)
            facts.application = UnsafeRawBufferPointer(application)
            facts.user = UnsafeRawBufferPointer(user)
            facts.details = .registration(json)
            let discriminator = "\(place.partition)/\(place.offset)"
            var text = discriminator
            text.withUTF8 { text in
              facts.discriminator = UnsafeRawBufferPointer(text)
              // A device event that Kafka's queue has no room for is told by the registration itself, which Kafka has.
              _ = eventProducer?.say(facts, key: facts.device, token: 0)
            }
          }
        }
      }
    }
  }

  // MARK: Later changes

  /// Registrations that may wait for Kafka at a time.
  private static let mostRegistering = 1024
  /// Entries of a mailbox that are ended at a time.
  private static let purgePage = 100

  func change(_ change: RegistrationChange, _ session: Session, _ open: OpenSession) {
    guard beginsChange(session, open) else { return }
    runTask?(.change(session.generation, change))
  }

  private func beginsChange(_ session: Session, _ open: OpenSession) -> Bool {
    guard open.changes < OpenSession.mostChanges else {
      metrics.limited(.changes)
      session.close(.tooManyFrames)
      return false
    }
    open.changes += 1
    return true
  }

  func performChange(_ generation: UInt64, _ change: RegistrationChange) async {
    guard let session = sessions[generation], let open = session.open else { return }
    defer { open.changes -= 1 }
    var registration = open.registration
    change.apply(to: &registration)
    open.registration = registration
    do {
      try await register(registration, saying: .settingsChanged)
      accepted(request: change.request, session)
    } catch let error as Overload {
      sendAway(session, at: error.limit)
    } catch {
      noticed(error)
      logger.warning("a registration could not be changed", ["error": "\(error)"])
      session.close(.serviceUnavailable)
    }
  }

  func unregister(_ frame: UnregisterFrame, _ session: Session, _ open: OpenSession) {
    guard beginsChange(session, open) else { return }
    runTask?(.unregister(session.generation, frame.request))
  }

  func performUnregistration(_ generation: UInt64, _ request: String?) async {
    guard let session = sessions[generation], let open = session.open, let eventProducer else { return }
    defer { open.changes -= 1 }
    do {
      guard registering < Self.mostRegistering else { throw Overload(limit: .registrations) }
      registering += 1
      defer { registering -= 1 }
      let place = try await eventProducer.publish(nil, of: open.token)
      let record = Registrations.Record(token: open.token, nil, partition: place.partition, offset: place.offset)
      if case .applied = try await registrations.apply(record) {
        try await purge(open.token, keeping: nil)
        say(.unregisteredDevice, open.registration, [], place)
      }
      accepted(request: request, session)
      session.close(.unregistered, pending: .sent)
    } catch let error as Overload {
      sendAway(session, at: error.limit)
    } catch {
      noticed(error)
      logger.warning("a device could not be unregistered", ["error": "\(error)"])
      session.close(.serviceUnavailable)
    }
  }

  private func accepted(request: String?, _ session: Session) {
    guard let request else { return }
    frames.reset()
    ServerFrames.accepted(request: request, to: &frames)
    session.connection?.send(frame())
  }

  // MARK: Presence, later

  /// The repeated hello: an absent presence is restored, a foreign one ends the session, what lies in the mailbox is sent.
  func refresh(_ generation: UInt64) async {
    guard let session = sessions[generation], let open = session.open, shards.isUp else { return }
    let presence = Presence(partition: partition, generation: generation)
    let found: Presences.Refreshed
    do throws(StoreError) { found = try await presences.refresh(open.token, presence) } catch { return noticed(error) }
    guard sessions[generation] != nil else { return }
    switch found {
    case .present(let entries, let standing):
      if isBehind(standing, open) { return await registerAgain(session, open) }
      if entries > 0 { session.perform(open.flow.look(), open) }
    case .elsewhere:
      // What a Redis that has lost something says of another session may be long over: the device asks again.
      session.close(shards.epoch == open.epoch ? .takenOver : .serviceUnavailable)
    case .unregistered(let standing):
      if isBehind(standing, open) { return await registerAgain(session, open) }
      session.close(.registrationLost)
    }
  }

  /// Whether another registration stands than the session's, and an older one: Redis has lost the session's.
  private func isBehind(_ standing: RegistrationStamp?, _ open: OpenSession) -> Bool {
    guard let standing else { return true }
    return standing.digest != open.registration.digest && standing.offset <= open.registeredAt
  }

  /// Publishes the session's registration anew; it belongs to its user since when it did.
  private func registerAgain(_ session: Session, _ open: OpenSession) async {
    do {
      try await register(open.registration)
      guard sessions[session.generation] != nil else { return }
      runTask?(.refresh(session.generation))
    } catch {
      logger.warning("a registration that Redis has lost could not be restored", ["error": "\(error)"])
    }
  }

  /// A session is over: its presence goes, unless a newer one stands.
  func leave(_ token: String, _ generation: UInt64) { presences.leave(token, Presence(partition: partition, generation: generation)) }
}
