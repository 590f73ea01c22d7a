import HTTP
import JSON
import Notifications
import Store
import Worker

/// Changes of a registration by the session that has it, and its end.
extension FanOutCore {
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
      try await registrar.register(registration, saying: .settingsChanged)
      accepted(request: change.request, session)
    } catch let error as Overload {
      goAway(session, at: error.limit)
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
    guard let session = sessions[generation], let open = session.open else { return }
    defer { open.changes -= 1 }
    do {
      try await registrar.unregister(open.registration)
      accepted(request: request, session)
      session.close(.unregistered, pending: .sent)
    } catch let error as Overload {
      goAway(session, at: error.limit)
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
}
