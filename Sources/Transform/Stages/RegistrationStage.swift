import Kafka
import Notifications
import Store
import Worker

/// Applies the records of `devices`: registrations, most of which a fan-out lane has applied already. Loop-confined.
final class RegistrationStage {
  private let inFlight: InFlight
  private let errors: StoreErrors
  private let registrations: Registrations
  /// Nil where a Redis is rebuilt.
  private let zoneChanges: ZoneChanges?
  private let logger: Logger

  /// - Parameter zoneChanges: nil where a Redis is rebuilt.
  init(_ registrations: Registrations, _ zoneChanges: ZoneChanges?, _ inFlight: InFlight, _ errors: StoreErrors, _ logger: Logger) {
    (self.registrations, self.zoneChanges, self.inFlight) = (registrations, zoneChanges, inFlight)
    (self.errors, self.logger) = (errors, logger)
  }

  /// Applies a registration.
  func take(_ slot: Slot) {
    let record = inFlight[slot].record
    if EndTombstone.matches(record) { return inFlight[slot].verdict = .registration(.superseded) }
    do throws(UnreadableRegistration) {
      let registration = try Registrations.Record(record)
      inFlight.expect(1, of: slot)
      registrations.apply(registration) { [self] outcome in registered(slot, registration.registration, outcome) }
    } catch {
      guard !error.isNewer else {
        inFlight.expect(1, of: slot)
        return errors.failed(inFlight.answer(slot), StoreError(.newer(.registration), "\(SourceCoordinates(record)): \(error.reason)"))
      }
      logger.warning(
        "a record of devices is passed over", ["partition": Int(record.partition), "offset": record.offset, "error": error.reason])
      inFlight[slot].verdict = .registration(.unreadable)
    }
  }

  private func registered(_ slot: Slot, _ registration: Registration?, _ outcome: Result<Registrations.Outcome, StoreError>) {
    let answer = inFlight.answer(slot)
    switch outcome {
    case .success(.applied):
      inFlight[slot].verdict = .registration(.applied)
      if let registration { zoneChanges?.registered(slot, registration) }
    case .success(.superseded): inFlight[slot].verdict = .registration(.superseded)
    case .failure(let error): return errors.failed(answer, error)
    }
    inFlight.done(answer)
  }
}

/// A record of `devices` that is no registration.
private struct UnreadableRegistration: Error {
  let reason: String
  /// A newer program has written it.
  var isNewer = false
}

extension Registrations.Record {
  fileprivate init(_ record: RecordView) throws(UnreadableRegistration) {
    guard let device = record.key.flatMap({ DeviceToken(String(decoding: $0, as: UTF8.self)) })?.text else {
      throw UnreadableRegistration(reason: "its key is no device token")
    }
    var registration: Registration?
    if let value = record.value {
      do throws(FieldError) {
        registration = try Registration(json: value)
      } catch { throw UnreadableRegistration(reason: "\(error)", isNewer: error.field == Registration.layoutField) }
    }
    guard registration.map({ $0.device.text == device }) ?? true else {
      throw UnreadableRegistration(reason: "its key is not the device that its value names")
    }
    self.init(token: device, registration, partition: record.partition, offset: record.offset)
  }
}
