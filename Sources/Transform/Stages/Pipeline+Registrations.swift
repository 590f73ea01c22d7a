import Kafka
import Notifications
import Store
import Worker

/// The records of `devices`: registrations, which a fan-out lane has mostly applied already.
extension Pipeline {
  /// Applies a registration.
  func register(_ slot: Flow.Slot, _ record: RecordView) {
    flow.expect(1, of: slot)
    do throws(UnreadableRegistration) {
      registrations.apply(try Registrations.Record(record)) { [self] answer in registered(slot, answer) }
    } catch {
      logger.warning(
        "a record of devices is passed over", ["partition": Int(record.partition), "offset": record.offset, "error": error.reason])
      records[slot].verdict = .unreadable
      finish(slot)
    }
  }

  private func registered(_ slot: Flow.Slot, _ answer: Result<Registrations.Outcome, StoreError>) {
    switch answer {
    case .success(.applied): records[slot].verdict = .applied
    case .success(.superseded): records[slot].verdict = .superseded
    case .failure(let error): return failed(slot, error)
    }
    finish(slot)
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
