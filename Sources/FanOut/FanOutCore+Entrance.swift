import EventLoop
import Cryptography
import HTTP
import JSON
import Kafka
import Notifications
import Redis
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
    let keys = self.keys(of: token)
    var digest = digestBytes(registration)
    var answer = try await redis.call(SessionScripts.enter, keys: keys, arguments: [.bytes(presence.bytes), .bytes(digest)])
    // Between the publication and this call another session of the device may have registered differently: the last hello wins.
    for _ in 0..<3 where answer.array?.first?.integer != 1 {
      try requireBucket(answer)
      // What Redis may have lost is not published anew as if it were of today.
      guard watch.isRegistryWhole else { throw RedisError(.notConnected, "the registry is being restored") }
      let standing = answer.array.flatMap { $0.count > 1 ? $0[1].bytes.flatMap(Owner.init) : nil }
      if let standing, standing.user == Owner(registration).user, standing.application == StableHash.hash(registration.application) {
        registration.since = Int64(clamping: standing.since)
      }
      if holdsPlace {
        holdsPlace = false
        entranceEnded()
      }
      try await register(registration)
      guard sessions[session.generation] != nil else { return }
      digest = digestBytes(registration)
      answer = try await redis.call(SessionScripts.enter, keys: keys, arguments: [.bytes(presence.bytes), .bytes(digest)])
    }
    guard let parts = answer.array, parts.count == 6, parts[0].integer == 1, let owner = parts[2].bytes.flatMap(Owner.init) else {
      throw RedisError(.rejected, "the device's registration did not stand; another session may be registering it")
    }
    // The audience lies in another slot than the device: every hello makes sure of it.
    if let user = registration.user {
      _ = try await redis.command(
        "ZADD", .text(settings.keys.audience(user: user, application: registration.application)), 0, .text(token))
    }
    if let former = parts[1].bytes.flatMap(Presence.init), former.generation != session.generation { end(former, token) }
    guard sessions[session.generation] != nil else { return runTask?(.leave(token: token, session.generation)) ?? () }
    registration.since = Int64(clamping: owner.since)
    let open = OpenSession(
      token: token, registration: registration, owner: owner, registeredAt: Self.offset(parts[5]) ?? 0, expiration: expiration,
      epoch: redis.epoch,
      flow: SessionFlow(first: RandomBytes.number() >> 20, window: settings.window))
    welcome(session, open, gap: parts[3].bytes ?? [])
  }

  /// What scripts work on.
  private func keys(of token: String) -> [RedisArgument] {
    [.text(settings.keys.device(token)), .text(settings.keys.mailbox(token)), .text(settings.keys.guardKey(ofDevice: token))]
  }

  /// Where Redis has lost what it had nothing is written to it before it was rebuilt.
  private func requireBucket(_ answer: RedisValue) throws(RedisError) {
    guard answer.array?.first?.integer != -2 else {
      watch.lost()
      throw RedisError(.notConnected, "Redis has lost what it had; 'carillon rebuild' restores it from Kafka")
    }
  }

  /// The device's former session ends: here, or by way of its lane's partition.
  private func end(_ former: Presence, _ token: String) {
    metrics.takeovers.increment()
    if let session = sessions[former.generation] { return session.close(.takenOver) }
    eventProducer?.takeOver(former, token: token)
  }

  private func welcome(_ session: Session, _ open: OpenSession, gap: [UInt8]) {
    frames.reset()
    ServerFrames.welcome(
      session: session.generation, now: WallClock.milliseconds(), pingSeconds: settings.pingSeconds, window: settings.window,
      rememberSeconds: settings.longestLifetime, frameBytes: settings.frameBytes, userTextBytes: Registration.userTextBytes, to: &frames)
    session.connection?.send(frame())
    if gap.count == 2 * Revision.byteCount {
      frames.reset()
      gap.withUnsafeBytes { bytes in
        if let from = Revision(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<Revision.byteCount])),
          let to = Revision(bytes: UnsafeRawBufferPointer(rebasing: bytes[Revision.byteCount...]))
        {
          ServerFrames.mailboxGap(from: from, to: to, to: &frames)
        }
      }
      session.connection?.send(frame())
      open.gap = gap
    }
    metrics.sessions.increment()
    watch(session)
    session.welcome(open)
  }

  // MARK: Registration

  private func digestBytes(_ registration: Registration) -> [UInt8] { withUnsafeBytes(of: registration.digest.bigEndian, Array.init) }

  /// Publishes a registration, and applies it when Kafka has it: in the device's hash, its mailbox and its person's audience.
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
    let owner = Owner(registration)
    let audience = registration.user.map { settings.keys.audience(user: $0, application: registration.application) } ?? ""
    let applied = try await apply(owner.bytes, registration.field(partition: place.partition, offset: place.offset), audience, token)
    guard let applied else { return }
    if let former = Owner(applied.owner), former.user != owner.user || former.application != owner.application {
      try await purge(token, keeping: owner)
    }
    if !audience.isEmpty { _ = try await redis.command("ZADD", .text(audience), 0, .text(token)) }
    if !applied.audience.isEmpty, applied.audience != audience {
      _ = try await redis.command("ZREM", .text(applied.audience), .text(token))
    }
    say(type, registration, value, place)
  }

  /// What stood before, or nil when a later registration stands.
  private func apply(
    _ owner: [UInt8], _ registration: [UInt8], _ audience: String, _ token: String
  ) async throws -> (owner: [UInt8], audience: String)? {
    let answer = try await redis.call(
      RegistryScript.apply, keys: keys(of: token),
      arguments: [.bytes(owner), .bytes(registration), .integer(settings.longestLifetime * 1000), .text(audience)])
    try requireBucket(answer)
    guard let parts = answer.array, parts.count == 3, parts[0].integer == 1 else { return nil }
    return (parts[1].bytes ?? [], parts[2].text ?? "")
  }

  /// Removes from the mailbox what is not for its owner (all, for nil), after Kafka has its events.
  private func purge(_ token: String, keeping owner: Owner?) async throws {
    let mailbox = RedisArgument.text(settings.keys.mailbox(token))
    // What stays lies before the next page.
    var staying = 0
    while true {
      let answer = try await redis.call(
        SessionScripts.page, keys: [mailbox], arguments: [.integer(Int64(Self.purgePage)), .integer(Int64(staying))])
      guard let parts = answer.array, parts.count > 1 else { return }
      let (gone, isWhole) = await end(parts, token, keeping: owner)
      staying += parts.count / 2 - gone.count
      if !gone.isEmpty { _ = try await redis.command(["HDEL", mailbox] + gone) }
      // What Kafka does not have stays; the next page would fare no better.
      guard isWhole else { return }
      if parts.count / 2 < Self.purgePage { return }
    }
  }

  /// Says the end of a page's entries; answers the revisions of those whose end Kafka has, and whether that is all of them.
  private func end(_ parts: [RedisValue], _ token: String, keeping owner: Owner?) async -> (gone: [RedisArgument], isWhole: Bool) {
    guard let eventProducer else { return ([], false) }
    var ended: [(revision: [UInt8], entry: [UInt8])] = []
    for index in stride(from: 0, to: parts.count - 1, by: 2) {
      guard let revision = parts[index].bytes, let entry = parts[index + 1].bytes else { continue }
      let isOver = entry.withUnsafeBytes { DeliveryEntryView(kept: $0).map { owner?.takes($0) != true } ?? false }
      if isOver { ended.append((revision, entry)) }
    }
    let failed = await awaited.say(ended.count) { number, report in
      let (revision, entry) = ended[number]
      return entry.withUnsafeBytes { bytes -> Bool in
        guard let view = DeliveryEntryView(bytes) else { return false }
        var device = token
        return device.withUTF8 { device in
          let device = UnsafeRawBufferPointer(device)
          var facts = EventFacts(
            owner == nil ? .unregistered : .filtered, of: view, device: device, revision: revision.withUnsafeBytes { Revision(bytes: $0) })
          if let owner { facts.details = .reason(owner.reasonAgainst(view)) }
          return eventProducer.say(facts, key: device, token: report)
        }
      }
    }
    return (ended.indices.filter { !failed.contains($0) }.map { .bytes(ended[$0].revision) }, failed.isEmpty)
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
      let applied = try await apply([], Registration.field(partition: place.partition, offset: place.offset), "", open.token)
      if let applied {
        try await purge(open.token, keeping: nil)
        if !applied.audience.isEmpty { _ = try await redis.command("ZREM", .text(applied.audience), .text(open.token)) }
        say(.unregisteredDevice, open.registration, [], place)
      }
      accepted(request: request, session)
      session.close(.unregistered, pending: .sent)
    } catch let error as Overload {
      sendAway(session, at: error.limit)
    } catch {
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
    guard let session = sessions[generation], let open = session.open, redis.isUp else { return }
    let presence = Presence(partition: partition, generation: generation)
    let answer = try? await redis.call(SessionScripts.refresh, keys: keys(of: open.token), arguments: [.bytes(presence.bytes)])
    guard sessions[generation] != nil, let parts = answer?.array, let state = parts.first?.integer else { return }
    switch state {
    case 1:
      if parts.count > 2, isBehind(parts[2], open) { return await registerAgain(session, open) }
      if parts.count > 1, (parts[1].integer ?? 0) > 0 { session.perform(open.flow.look(), open) }
    case 0:
      // What a Redis that has lost something says of another session may be long over: the device asks again.
      session.close(redis.epoch == open.epoch ? .takenOver : .serviceUnavailable)
    case -1:
      if parts.count > 1, isBehind(parts[1], open) { return await registerAgain(session, open) }
      session.close(.registrationLost)
    default: watch.lost()
    }
  }

  /// Whether another registration stands than the session's, and an older one: Redis has lost the session's.
  private func isBehind(_ standing: RedisValue, _ open: OpenSession) -> Bool {
    guard let bytes = standing.bytes, let offset = Self.offset(standing) else { return true }
    return Array(bytes[..<8]) != digestBytes(open.registration) && offset <= open.registeredAt
  }

  /// The offset in what the field `r` says.
  private static func offset(_ registration: RedisValue) -> Int64? {
    guard let bytes = registration.bytes, bytes.count == 20 else { return nil }
    return bytes[12...].reduce(0) { $0 << 8 | Int64($1) }
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
  func leave(_ token: String, _ generation: UInt64) { runTask?(.leave(token: token, generation)) }

  func performLeave(_ token: String, _ generation: UInt64) async {
    let presence = Presence(partition: partition, generation: generation)
    // When it fails the presence stays until the device's next hello; until then its records go to nobody, and wait in the mailbox.
    _ = try? await redis.call(
      SessionScripts.leave, keys: keys(of: token), arguments: [.bytes(presence.bytes), .integer(settings.longestLifetime * 1000)])
  }
}
