import Notifications

extension Outcome {
  /// The ending of a schedule with this event; nil if it ends none.
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

  /// Whether a request ends completely with it, if it names no device.
  var endsWholeRequest: Bool {
    switch self {
    case .collapsed, .canceled, .evicted, .expired, .duplicate, .carriedOut: true
    case .delivered, .updated, .removed, .filtered, .unregistered, .rejected, .wrongApplication, .deadLettered, .wrongUser, .replayed,
      .unreadable, .queued, .scheduled, .addressed, .response, .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      false
    }
  }
}
