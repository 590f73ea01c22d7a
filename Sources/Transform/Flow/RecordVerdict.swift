/// What became of a record, as the metrics name it. Each record that a lane takes ends in exactly one, however often it is done again.
enum RecordVerdict: Int, CaseIterable {
  // Of a request.

  /// It is in its device's mailbox, now or from an earlier try.
  case queued
  /// It came too late.
  case expired
  /// A newer one of the same collapse id is known.
  case collapsed
  /// The same apns-id came before.
  case duplicate
  /// It is for a person, and was judged for each of the devices: the counters of `DeviceVerdict` say how.
  case addressed
  /// Its device is not registered, or none of its person's devices is.
  case unregistered
  /// It breaks a rule.
  case rejected
  /// Its application was stopped when it was published.
  case filtered
  /// It comes again by a replay, and was applied before.
  case replayed

  // Of a registration.

  /// The registry has it now.
  case applied
  /// The registry has it, or a later one.
  case superseded
  /// It is no registration, and was passed over.
  case unreadable

  // Of either.

  /// It could not be processed, and is in the dead letters.
  case poison
  /// Its partition was revoked before it was done: the next owner takes it.
  case revoked

  /// Its name in the metrics.
  var name: String { "\(self)" }

  static let ofRequests: [RecordVerdict] = [
    .queued, .expired, .collapsed, .duplicate, .addressed, .unregistered, .rejected, .filtered, .replayed, .poison, .revoked,
  ]
  static let ofRegistrations: [RecordVerdict] = [.applied, .superseded, .unreadable, .poison, .revoked]
}
