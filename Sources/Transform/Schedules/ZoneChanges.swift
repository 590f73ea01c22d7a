import Calendars
import Notifications
import Store
import Worker

/// Has the pending schedules of a device and of its person adapted to the zone that the device has registered. Loop-confined.
///
/// Only the lane that has a schedule's partition changes it and knows when it is due. So this writes a firing of no occurrence into that
/// partition, for each schedule that lacks the zone. The registration is not finished before Kafka has these firings.
final class ZoneChanges {
  private let schedules: Schedules
  private let writer: ScheduleWriter
  private let inFlight: InFlight
  private let errors: StoreErrors
  private var judge = ScheduleJudge()
  /// The time in milliseconds since 1970.
  private let wallClock: () -> Int64

  init(
    _ schedules: Schedules, _ writer: ScheduleWriter, _ inFlight: InFlight, _ errors: StoreErrors, wallClock: @escaping () -> Int64
  ) {
    (self.schedules, self.writer, self.inFlight, self.errors, self.wallClock) = (schedules, writer, inFlight, errors, wallClock)
  }

  /// Looks for the schedules of a registration that was applied.
  func registered(_ slot: Slot, _ registration: Registration) {
    adapt(slot, registration, target: Name("device:\(registration.device.text)"), isOnly: true)
    if let user = registration.user { adapt(slot, registration, target: Name("user:\(user)"), isOnly: false) }
  }

  private func adapt(_ slot: Slot, _ registration: Registration, target: Name, isOnly: Bool) {
    inFlight.expect(1, of: slot)
    schedules.pending(application: registration.application, target: target) { [self] found in
      let answer = inFlight.answer(slot)
      switch found {
      case .failure(let error): errors.failed(answer, error)
      case .success(let found):
        let zone = Name(registration.timeZone ?? "")
        var isComplete = true
        for schedule in found {
          guard let record = schedule.state.record, judge.lacks(record, zone: zone, isOnly: isOnly) else { continue }
          isComplete = ask(slot, schedule.key, record, zone) && isComplete
        }
        if isComplete { inFlight.done(answer) } else { inFlight.failed(answer) }
      }
    }
  }

  private func ask(_ slot: Slot, _ key: ScheduleKey, _ record: ScheduleRecord, _ zone: Name) -> Bool {
    let known = zone == "" ? DueTimes.defaultZone : zone
    guard writer.adapt(key, record, to: known, now: wallClock(), .record(slot)) else { return false }
    inFlight.expect(1, of: slot)
    return true
  }
}
