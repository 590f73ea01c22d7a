import Notifications
import Store
import Worker

/// Where the device is connected, as long as the session lasts.
extension FanOutCore {
  /// The repeated hello: an absent presence is restored, another session's ends this one, what lies in the mailbox is sent.
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
    case .elsewhere: elsewhere(session, open)
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

  /// Publishes the session's registration again; it belongs to its user since when it did.
  private func registerAgain(_ session: Session, _ open: OpenSession) async {
    do {
      try await registrar.register(open.registration)
      guard sessions[session.generation] != nil else { return }
      runTask?(.refresh(session.generation))
    } catch {
      logger.warning("a registration that Redis has lost could not be restored", ["error": "\(error)"])
    }
  }

  /// A session is over: its presence goes, unless a newer one stands.
  func leave(_ token: String, _ generation: UInt64) { presences.leave(token, Presence(partition: partition, generation: generation)) }
}
