import Kafka
import Notifications
import Store
import Worker

/// Applies the records of `devices`: registrations, which a fan-out lane has mostly applied already. Loop-confined.
final class RegistrationStage {
  private let inFlight: InFlight
  private let registrations: Registrations
  private let logger: Logger

  init(_ registrations: Registrations, _ inFlight: InFlight, _ logger: Logger) {
    (self.registrations, self.inFlight, self.logger) = (registrations, inFlight, logger)
  }

  /// Applies a registration.
  func take(_ slot: Flow.Slot) {
    let record = inFlight[slot].record
    inFlight.expect(slot)
    if EndTombstone.matches(record) {
      inFlight[slot].verdict = .superseded
      return inFlight.answered(slot)
    }
    do throws(UnreadableRegistration) {
      registrations.apply(try Registrations.Record(record)) { [self] answer in registered(slot, answer) }
    } catch {
      logger.warning(
        "a record of devices is passed over", ["partition": Int(record.partition), "offset": record.offset, "error": error.reason])
      inFlight[slot].verdict = .unreadable
      inFlight.answered(slot)
    }
  }

  private func registered(_ slot: Flow.Slot, _ answer: Result<Registrations.Outcome, StoreError>) {
    switch answer {
    case .success(.applied): inFlight[slot].verdict = .applied
    case .success(.superseded): inFlight[slot].verdict = .superseded
    case .failure(let error): return inFlight.failed(slot, error)
    }
    inFlight.answered(slot)
  }
}

/// A record of `devices` that is no registration.
private struct UnreadableRegistration: Error {
  let reason: String
}

extension Registrations.Record {
  fileprivate init(_ record: RecordView) throws(UnreadableRegistration) {
    guard let device = record.key.flatMap({ DeviceToken(String(decoding: $0, as: UTF8.self)) })?.text else {
      throw UnreadableRegistration(reason: "its key is no device token")
    }
    var registration: Registration?
    if let value = record.value {
      do { registration = try Registration(json: value) } catch { throw UnreadableRegistration(reason: "\(error)") }
    }
    guard registration.map({ $0.device.text == device }) ?? true else {
      throw UnreadableRegistration(reason: "its key is not the device that its value names")
    }
    self.init(token: device, registration, partition: record.partition, offset: record.offset)
  }
}
