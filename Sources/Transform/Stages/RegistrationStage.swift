import Kafka
import Notifications
import Store
import Worker

/// Applies the records of `devices`: registrations, most of which a fan-out lane has applied already.
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
      if let token = error.newer {
        let waits = StoreError(.newer(.registration), "\(SourceCoordinates(record)): \(error.reason)")
        inFlight.expect(1, of: slot)
        // A newer fan-out worker may have applied it, or the device has registered again since.
        registrations.stands(token, partition: record.partition, offset: record.offset) { [self] in found(slot, $0, waits) }
        return
      }
      logger.warning(
        "a record of devices is passed over", ["partition": Int(record.partition), "offset": record.offset, "error": error.reason])
      inFlight[slot].verdict = .registration(.unreadable)
    }
  }

  /// Ends the record of a newer program if Redis has it. Else only a newer worker can apply it.
  private func found(_ slot: Slot, _ stands: Result<Bool, StoreError>, _ waits: StoreError) {
    let answer = inFlight.answer(slot)
    switch stands {
    case .success(true):
      inFlight[slot].verdict = .registration(.superseded)
      inFlight.done(answer)
    case .success(false): errors.failed(answer, waits)
    // A device that cannot be read lacks the record, too.
    case .failure(let error): errors.failed(answer, error.code == .faulty ? waits : error)
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
  /// The device, if a newer program has written the record.
  var newer: String?
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
      } catch { throw UnreadableRegistration(reason: "\(error)", newer: error.field == Registration.layoutField ? device : nil) }
    }
    guard registration.map({ $0.device.text == device }) ?? true else {
      throw UnreadableRegistration(reason: "its key is not the device that its value names")
    }
    self.init(token: device, registration, partition: record.partition, offset: record.offset)
  }
}
