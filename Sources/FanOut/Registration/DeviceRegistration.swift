import Cryptography
import EventLoop
import HTTP
import Notifications
import Store
import Worker

/// The calls of a session to Redis and Kafka for its device. Each function is the work of one task, from top to bottom.
final class DeviceRegistration {
  private let settings: FanOutSettings
  private let logger: Logger
  private let metrics: FanOutMetrics
  private let admission: Admission
  private let sessions: Sessions
  private let registrar: Registrar
  private let recipients: Recipients
  private let watch: RegistryWatch

  init(
    _ settings: FanOutSettings, _ admission: Admission, _ sessions: Sessions, _ registrar: Registrar, _ recipients: Recipients,
    _ watch: RegistryWatch, logger: Logger, metrics: FanOutMetrics
  ) {
    self.settings = settings
    self.logger = logger
    self.metrics = metrics
    self.admission = admission
    self.sessions = sessions
    self.registrar = registrar
    self.recipients = recipients
    self.watch = watch
  }

  // MARK: From the hello to the welcome

  /// Processes an admitted hello: writes the presence, publishes a new registration, and ends the former session.
  func enter(_ generation: UInt64) async {
    // A hello that waits for Kafka gives up its turn. So devices with an unchanged registration still enter while Kafka is away.
    var holdsTurn = true
    defer { if holdsTurn { admission.ended() } }
    guard let session = sessions[generation], case .entering(let hello) = session.phase else { return }
    do {
      // The welcome tells the device the time.
      guard sessions.isClockRight else { throw StoreError(.unavailable, "the machine's clock is wrong") }
      let expiration = try self.expiration(of: hello)
      let token = hello.device.text
      let presence = sessions.presence(generation)
      var registration = hello.registration(since: WallClock.milliseconds())
      var found = try await sessions.presences.enter(token, presence, digest: registration.digest)
      // Between the publication and this call another session of the device may have registered differently: the last hello wins.
      for _ in 0..<3 {
        guard case .otherRegistration(let standing) = found else { break }
        // A registration that Redis may have lost must not be published again with today's `since`.
        guard watch.isRegistryComplete else { throw StoreError(.unavailable, "the registry is being restored") }
        if let standing, standing.isSame(as: Owner(registration)) { registration.since = Int64(clamping: standing.since) }
        if holdsTurn {
          holdsTurn = false
          admission.ended()
        }
        // Its zone may be another one, too.
        guard sessions.mayChange(NameHash.hash(token), movesSchedules: hello.timeZone != nil) else { return session.closeAsTooMany() }
        try await registrar.register(registration)
        guard session.isEntering else { return }
        found = try await sessions.presences.enter(token, presence, digest: registration.digest)
      }
      guard case .present(let standing) = found else {
        throw StoreError(.unavailable, "the device's registration did not stand; another session may be registering it")
      }
      // The person's set lies in another bucket than the device, and may miss it. So every hello adds the device.
      try await recipients.add(token, registration)
      if let former = standing.former, former.generation != generation { sessions.takeOver(former, token) }
      guard session.isEntering else { return sessions.leave(token, generation) }
      session.welcome(OpenSession(session, registration, standing, expiration: expiration))
    } catch let error as CredentialError {
      metrics.count(.unauthorized)
      session.close(.unauthorized, "\(error)")
    } catch let error as Overload {
      session.goAway(at: error.limit)
    } catch {
      watch.noticed(error)
      logger.warning("a device could not enter", ["error": "\(error)"])
      session.goAway(retryAfterAtLeast: 2000)
    }
  }

  /// When the hello's credential expires, in seconds since 1970; throws when it does not let the device in.
  private func expiration(of hello: Hello) throws(CredentialError) -> Int64 {
    guard case .credential = settings.admission else { return .max }
    guard let text = hello.credential else { throw .missing }
    let keys = settings.keys.value.keys.map { SignatureKey(secret: $0) }
    guard let token = SignedToken(verifying: text, with: keys) else { throw .notSigned }
    let credential = try Credential(token, now: WallClock.seconds())
    guard credential.device == hello.device.text else { throw .another("device") }
    guard credential.application == hello.application else { throw .another("application") }
    guard credential.user == hello.user else { throw .another("user") }
    metrics.credentials.increment(token.keyID)
    return credential.expiration
  }

  // MARK: From time to time

  /// Repeats the hello: restores an absent presence, ends this session if another one has the presence, and sends the mailbox.
  func resync(_ generation: UInt64) async {
    guard let open = sessions[generation]?.open, sessions.isRedisUp else { return }
    let found: Presences.Refreshed
    do throws(StoreError) {
      found = try await sessions.presences.refresh(open.token, sessions.presence(generation))
    } catch { return watch.noticed(error) }
    guard let session = sessions[generation] else { return }
    switch found {
    case .present(let entries, let standing):
      if isLost(standing, open) { return await restore(open.registration, of: generation) }
      if entries > 0 || open.hasUndeleted { open.resync() }
    case .elsewhere: sessions.foundElsewhere(session)
    case .unregistered(let standing):
      if isLost(standing, open) { return await restore(open.registration, of: generation) }
      // The device's own unregistration may have come this far. Its task ends the session.
      if !open.isChanging { session.close(.registrationLost) }
    }
  }

  /// Whether Redis has lost the session's registration and has an older one. A running change is published anyway.
  private func isLost(_ standing: RegistrationStamp?, _ open: OpenSession) -> Bool {
    guard !open.isChanging else { return false }
    guard let standing else { return true }
    return standing.digest != open.registration.digest && standing.offset <= open.registeredAt
  }

  /// Publishes a session's registration again, with its former `since`.
  private func restore(_ registration: Registration, of generation: UInt64) async {
    do {
      try await registrar.register(registration)
      if sessions[generation] != nil { sessions.owner?.run(.resync(generation)) }
    } catch {
      logger.warning("a registration that Redis has lost could not be restored", ["error": "\(error)"])
    }
  }

  // MARK: Changes

  /// Publishes new settings or categories of the session's device, or settings of its person.
  func change(_ generation: UInt64, _ change: RegistrationChange) async {
    guard let session = sessions[generation], let open = session.open else { return }
    defer { open.changeEnded() }
    change.apply(to: &open.registration)
    do {
      // First, since it takes its turn at once: two changes of the quiet hours must reach Kafka in their order.
      if let person = change.person, let user = open.registration.user { try await registrar.set(person, of: user) }
      if change.changesRegistration { try await registrar.register(open.registration, emitting: .settingsChanged) }
      session.accept(change.request)
    } catch {
      failed(session, "a registration could not be changed", error)
    }
  }

  /// Unregisters the session's device.
  func unregister(_ generation: UInt64, _ request: String?) async {
    guard let session = sessions[generation], let open = session.open else { return }
    defer { open.changeEnded() }
    do {
      try await registrar.unregister(open.registration)
      session.accept(request)
      session.close(.unregistered, pending: .sent)
    } catch {
      failed(session, "a device could not be unregistered", error)
    }
  }

  private func failed(_ session: Session, _ what: StaticString, _ error: any Error) {
    if let error = error as? Overload { return session.goAway(at: error.limit) }
    watch.noticed(error)
    logger.warning(what, ["error": "\(error)"])
    session.close(.serviceUnavailable)
  }
}
