import Notifications

extension Outcome {
  /// How a schedule has ended whose request has an event of this type; nil for what ends no schedule.
  var endingOfSchedule: ScheduleRecord.Ending? {
    switch self {
    case .collapsed: .replaced
    case .canceled: .canceled
    case .evicted: .evicted
    case .delivered, .updated, .removed, .expired, .filtered, .duplicate, .unregistered, .rejected, .wrongApplication, .deadLettered,
      .wrongUser, .replayed, .unreadable, .queued, .scheduled, .carriedOut, .addressed, .response, .dismissed, .registered,
      .settingsChanged, .unregisteredDevice:
      nil
    }
  }

  /// Whether a request ends with it as a whole, if it is told of no device.
  var endsWholeRequest: Bool {
    switch self {
    case .collapsed, .canceled, .evicted, .expired, .duplicate, .carriedOut: true
    case .delivered, .updated, .removed, .filtered, .unregistered, .rejected, .wrongApplication, .deadLettered, .wrongUser, .replayed,
      .unreadable, .queued, .scheduled, .addressed, .response, .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      false
    }
  }
}
