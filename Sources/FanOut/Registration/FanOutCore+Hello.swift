import Cryptography
import EventLoop
import HTTP
import JSON
import Notifications
import Store
import Worker

/// From the hello to the welcome: credential, presence, registration, the former session.
extension FanOutCore {
  /// The hello's turn has come: its work waits for Redis and Kafka, so it is done by a task of the lane's actor.
  func performHello(_ generation: UInt64) async {
    var holdsPlace = true
    defer { if holdsPlace { admissionEnded() } }
    guard let session = sessions[generation], case .entering(let hello) = session.phase else { return }
    do {
      try await enter(session, hello, until: try expiration(of: hello), &holdsPlace)
    } catch let error as CredentialError {
      metrics.unauthorized.increment()
      session.close(.unauthorized, "\(error)")
    } catch let error as Overload {
      goAway(session, at: error.limit)
    } catch {
      noticed(error)
      logger.warning("a device could not enter", ["error": "\(error)"])
      goAway(session, .serviceUnavailable, retryAfter: gate.retryAfter(now: loop.milliseconds(), atLeast: 2000))
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
      // What Redis may have lost is not published again as if it were of today.
      guard watch.isRegistryComplete else { throw StoreError(.unavailable, "the registry is being restored") }
      if let standing, standing.isSame(as: Owner(registration)) {
        registration.since = Int64(clamping: standing.since)
      }
      if holdsPlace {
        holdsPlace = false
        admissionEnded()
      }
      try await registrar.register(registration)
      guard sessions[session.generation] != nil else { return }
      found = try await presences.enter(token, presence, digest: registration.digest)
    }
    guard case .present(let standing) = found else {
      throw StoreError(.unavailable, "the device's registration did not stand; another session may be registering it")
    }
    // The person's set lies in another bucket than the device: every hello makes sure of it.
    try await recipients.add(token, registration)
    if let former = standing.former, former.generation != session.generation { takeOver(former, token) }
    guard sessions[session.generation] != nil else { return leave(token, session.generation) }
    registration.since = Int64(clamping: standing.owner.since)
    let open = OpenSession(
      token: token, registration: registration, owner: standing.owner, registeredAt: standing.registration.offset, expiration: expiration,
      epoch: shards.epoch,
      flow: SessionFlow(first: RandomBytes.number() >> 20, window: settings.window))
    welcome(session, open, gap: standing.gap)
  }

  /// Where Redis has lost what it had nothing is written to it before it was rebuilt.
  func noticed(_ error: any Error) {
    if let error = error as? StoreError, error.code == .bucketLost { watch.lost() }
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
}
