import Calendars
import EventLoop
import Kafka
import Notifications
import Store

/// Puts the newest state of each schedule into Redis, as `schedule` has it, in the zones that its devices have now.
final class RebuiltSchedules {
  private let schedules: Schedules
  private let devices: DeviceFacts
  private let applier: ScheduleApplier
  /// States of one schedule, in the order of the topic. The first one is under way.
  private var waiting: [ScheduleKey: [ScheduleRecord]] = [:]
  /// States that do not stand yet.
  private(set) var count = 0
  /// Called when Redis has the state of a schedule, or the call has failed.
  var onAnswer: (StoreError?) -> Void = { _ in }

  init(_ schedules: Schedules, _ devices: DeviceFacts) {
    (self.schedules, self.devices) = (schedules, devices)
    applier = ScheduleApplier(schedules, ScheduleRules(), wallClock: WallClock.milliseconds)
  }

  /// Takes a record of `schedule`. Returns false if it is no state of a schedule.
  func take(_ record: RecordView) -> Bool {
    guard let key = record.key.flatMap({ ScheduleKey($0) }), let state = record.value.flatMap({ ScheduleRecord($0) }) else { return false }
    count += 1
    waiting[key, default: []].append(state)
    if waiting[key]?.count == 1 { apply(key) }
    return true
  }

  private func apply(_ key: ScheduleKey) {
    schedules.read(key) { [self] found in
      switch found {
      case .success(let found): write(key, in: found)
      case .failure(let error): ended(key, error)
      }
    }
  }

  private func write(_ key: ScheduleKey, in found: Schedules.State) {
    guard let state = waiting[key]?.first, found.record.map({ !$0.isNewer(than: state) }) ?? true else { return ended(key, nil) }
    schedules.write(state, of: key, replacing: found, isSettled: true, now: WallClock.milliseconds()) { [self] written in
      switch written {
      case .success(.written): adapt(key, state)
      case .success(.changed(let other)): write(key, in: other)
      case .success(.full): ended(key, StoreError(.refused, "Redis has no room for the schedules of a bucket"))
      case .failure(let error): ended(key, error)
      }
    }
  }

  /// Registrations that were made while Redis was empty have changed zones, and no worker reads them again.
  private func adapt(_ key: ScheduleKey, _ state: ScheduleRecord) {
    guard state.pending?.timedTrigger?.dependsOnDevices == true else { return ended(key, nil) }
    applier.adapt(key, zones: { [devices] then in devices.zones(of: key) { then($0.map(DeviceFacts.distinctZones)) } }) { [self] answer in
      if case .failure(let error) = answer { ended(key, error) } else { ended(key, nil) }
    }
  }

  private func ended(_ key: ScheduleKey, _ error: StoreError?) {
    count -= 1
    waiting[key]?.removeFirst()
    if waiting[key]?.isEmpty == true { waiting[key] = nil } else { apply(key) }
    onAnswer(error)
  }
}
