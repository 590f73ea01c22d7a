import Calendars
import Notifications
import Store

/// Requests the adaptation of pending schedules to the zone that a device registers.
///
/// It covers the schedules of the device and of its person. Only the lane that owns a schedule's partition changes it and knows when it is
/// due. So this lane writes a firing of no occurrence into that partition, for each schedule that lacks the zone. The registration is
/// finished when Kafka has these firings.
final class ZoneChanges {
  private let schedules: Schedules
  private let writer: ScheduleWriter
  private let inFlight: InFlight
  private let errors: StoreErrors
  private var rules = ScheduleRules()
  /// Returns the time in milliseconds since 1970.
  private let wallClock: () -> Int64

  init(
    _ schedules: Schedules, _ writer: ScheduleWriter, _ inFlight: InFlight, _ errors: StoreErrors, wallClock: @escaping () -> Int64
  ) {
    (self.schedules, self.writer, self.inFlight, self.errors, self.wallClock) = (schedules, writer, inFlight, errors, wallClock)
  }

  /// Looks for pending schedules after a registration was applied.
  func registered(_ slot: Slot, _ registration: Registration) {
    adapt(slot, registration, target: Name("device:\(registration.device.text)"), isOnly: true)
    for target in registration.memberships { adapt(slot, registration, target: target, isOnly: false) }
  }

  private func adapt(_ slot: Slot, _ registration: Registration, target: Name, isOnly: Bool) {
    inFlight.expect(1, of: slot)
    schedules.pending(application: registration.application, target: target) { [self] found in
      let answer = inFlight.answer(slot)
      switch found {
      case .failure(let error): errors.failed(answer, error)
      case .success(let found):
        // The lane that fires a newer program's schedule reads the zones. The registration goes on: restorations wait for it.
        if let newer = found.lazy.compactMap({ self.schedules.newer($0.state, of: $0.key) }).first { errors.tell(newer) }
        let zone = Name(registration.timeZone ?? "")
        var isComplete = true
        for schedule in found {
          guard let record = schedule.state.record, rules.isMissing(zone, in: record, isOnly: isOnly) else { continue }
          isComplete = ask(slot, schedule.key, record, zone) && isComplete
        }
        if isComplete { inFlight.done(answer) } else { inFlight.failed(answer) }
      }
    }
  }

  private func ask(_ slot: Slot, _ key: ScheduleKey, _ record: ScheduleRecord, _ zone: Name) -> Bool {
    let known = zone == "" ? DueTimes.defaultZone : zone
    guard writer.adapt(key, record, to: known, now: wallClock(), OutcomePurpose(.record, slot)) else { return false }
    inFlight.expect(1, of: slot)
    return true
  }
}
