import Calendars
import Kafka
import Notifications
import Store
import Worker

/// What a request asks of the schedules, and their answer. Most requests have no job.
final class ScheduleJob {
  /// What the request asks.
  enum Purpose {
    /// Show the notification at a time. The due times and the owner are not known yet.
    case timed(ScheduleRecord.Pending, TimedTrigger)
    /// What the rules may be asked without more.
    case request(ScheduleRules.Request.Kind)
    /// Show an occurrence that is due.
    case firing(ScheduleRules.Firing)
  }

  /// A schedule that was asked, and its answer.
  typealias Answer = (key: ScheduleKey, applied: ScheduleApplier.Applied)

  /// The schedule that the job asks. A cancel of all has a key of its own among those of its target.
  private(set) var key: ScheduleKey
  /// The schedule that a cancel asked first, under its identifier as given. Nothing was pending there.
  private var former: Answer?
  /// The revision and apns-id of the request.
  let reference: JournalReference
  /// The place of the request's record, whatever origin it names.
  let place: Revision
  /// What the request asks.
  let purpose: Purpose
  /// The answers of the schedules; nil while they are still to be asked. A cancel of all has those of the schedules that it canceled. Another
  /// request has one, or a second one before it: see `asksUnderID`.
  private(set) var answers: [Answer]?
  /// The zones of the person's devices, by their tokens, as they were when a firing had been applied; nil if they were not read then.
  var zones: [Name: Name]?

  init(_ key: ScheduleKey, _ reference: JournalReference, at place: Revision, _ purpose: Purpose) {
    (self.key, self.reference, self.place, self.purpose) = (key, reference, place, purpose)
  }

  /// The revision of the request; for a firing, of the request that scheduled it.
  var request: Revision { firing?.schedule ?? reference.revision }

  /// Whether it cancels all schedules of its target and application.
  var cancelsAll: Bool { if case .request(.cancelAll) = purpose { true } else { false } }
  /// Whether the job is a firing.
  var isFiring: Bool { firing != nil }
  /// The firing that the job is; nil for another request.
  var firing: ScheduleRules.Firing? { if case .firing(let firing) = purpose { firing } else { nil } }

  /// Whether the schedule of a firing has had its last occurrence.
  ///
  /// A schedule that was canceled, replaced or evicted has not. Its former occurrences may be read again after that.
  var hadLastOccurrence: Bool {
    guard let firing, let applied = answers?.last?.applied, let standing = applied.interim ?? applied.standing,
      case .ended(let ending) = standing.phase
    else { return false }
    switch ending {
    case .fired, .expired, .never: break
    case .replaced, .canceled, .evicted, .placed, .unscheduled, .evicting: return false
    }
    // A cancel that came too late leaves the ending as it is. A newer schedule that replaced this one may have had its last occurrence, too.
    return !standing.recent.contains { $0.superseded?.revision == firing.schedule }
  }

  /// Takes the first answer to a cancel. Returns whether the job now asks another schedule.
  ///
  /// A schedule without a collapse id is named by its apns-id in lower case. The identifier of a cancel may have that id in upper case.
  func asksUnderID(after applied: ScheduleApplier.Applied) -> Bool {
    guard case .request(.cancel) = purpose, case .tooLate = applied.verdict, former == nil,
      let id = key.identifier.withBytes({ NotificationID(text: $0) }),
      let other = ScheduleKey(application: key.application, target: key.target, identifier: Name(id.description)), other != key
    else { return false }
    former = (key, applied)
    key = other
    return true
  }

  /// Whether the schedule is still to be asked.
  var isOpen: Bool { answers == nil }

  /// Takes the answers of the schedules.
  func answered(_ answers: [Answer]) { self.answers = [former].compactMap { $0 } + answers }
}

extension ScheduleJob {
  /// Reads what a request asks of the schedules; nil if it asks nothing.
  ///
  /// - Parameters:
  ///   - record: the request's record. An interval begins at its time.
  ///   - replaces: whether a schedule may be pending under the identifier of a request that is shown now.
  convenience init?(_ view: RequestView, _ record: RecordView, incarnation: UInt32, replaces: Bool) {
    let purpose: Purpose
    let published = record.timestamp
    let revision = view.envelope.revision.inIncarnation(incarnation)
    switch view.timing {
    case .time(let trigger):
      guard case .timed(let timed)? = try? Trigger(trigger) else { return nil }
      let lifetime = view.expiration == 0 ? 0 : view.expiration - published / 1000
      purpose = view.expiration > 0 && lifetime <= 0 ? .request(.expired) : .timed(Self.pending(view, trigger, lifetime, published), timed)
    case .firing(let header):
      purpose = .firing(.init(header, revision, record))
    case .place: purpose = .request(.place)
    case .now:
      if view.operation == .cancel {
        purpose = .request(view.removesAll ? .cancelAll : .cancel)
      } else if replaces {
        purpose = .request(.now)
      } else {
        return nil
      }
    }
    guard let key = ScheduleKey(application: Name(view.application), target: view.target.name, identifier: view.identifier) else {
      return nil
    }
    self.init(key, JournalReference(revision: revision, id: view.envelope.id), at: Revision(SourcePosition(record)), purpose)
  }

  /// Reads which occurrence a rejected or dead-lettered record fires; nil if it is no firing.
  convenience init?(refused envelope: RequestEnvelope, _ record: RecordView, incarnation: UInt32) {
    guard !envelope.firing.isEmpty, let header = try? FiringHeader(envelope.firing), let target = Target(envelope.target),
      let key = ScheduleKey(
        application: Name(envelope.application), target: target.name, identifier: Name(envelope.collapseID))
    else { return nil }
    // Another producer may have broken a rule on purpose.
    guard envelope.id == header.occurrence else { return nil }
    let revision = envelope.revision.inIncarnation(incarnation)
    let reference = JournalReference(revision: revision, id: envelope.id)
    self.init(key, reference, at: Revision(SourcePosition(record)), .firing(.init(header, revision, record)))
  }

  private static func pending(_ view: RequestView, _ trigger: UnsafeRawBufferPointer, _ lifetime: Int64, _ published: Int64)
    -> ScheduleRecord.Pending
  {
    var headers: [ScheduleRecord.Pending.Header] = []
    view.forEachHeaderOfOccurrences { header, value in
      headers.append(.init(name: Name("\(header.name)"), value: Array(value)))
    }
    return ScheduleRecord.Pending(
      requested: Timestamp.bounded(published), lifetime: lifetime, dueTimes: [], trigger: Array(trigger), headers: headers,
      payload: Array(view.payload))
  }
}

extension ScheduleRules.Firing {
  /// The firing of a header and its record, which has this revision.
  fileprivate init(_ header: FiringHeader, _ revision: Revision, _ record: RecordView) {
    var headers: [ScheduleRecord.Pending.Header] = []
    var seen: Set<RequestHeader> = []
    record.forEachHeader { name, value in
      guard let value else { return }
      if let header = RequestHeader.named(name) {
        // Agents on the way may change the trace context.
        guard header != .traceparent, !seen.insert(header).inserted || header.isOfOccurrences else { return }
        headers.append(.init(name: Name("\(header.name)"), value: Array(value)))
      } else if UnknownField(header: name) != nil {
        headers.append(.init(name: "", value: []))
      }
    }
    self.init(
      revision: revision, at: record.timestamp, schedule: header.schedule.revision, owner: header.owner,
      payload: record.value.map(Array.init) ?? [],
      written: .init(id: header.schedule.id, repeats: header.repeats, headers: headers), header.dueTime)
  }
}

extension RequestHeader {
  /// Whether the header of a firing says something of the notification, and not only which one it is.
  fileprivate var isOfOccurrences: Bool {
    switch self {
    case .target, .id, .collapseID, .firing, .traceparent: false
    // The cluster writes a firing without an origin. One that was published again is known by its first place.
    case .origin, .topic, .expiration, .priority, .pushType, .channelID, .trigger, .operation, .whenOpened: true
    }
  }
}
