import EventLoop
import Notifications
import Store
import Worker

/// The applications as the stage sees them; `ApplicationsReader` documents the answers.
protocol KnownApplications: AnyObject {
  var table: StoppedApplications { get }
  func confirm(_ body: @escaping (Bool) -> Void)
}

extension ApplicationsReader: KnownApplications {}

/// Filters requests that were published while their application was stopped. They go to no device.
///
/// A removal takes something off a screen, and passes. A stop that the lane knows no end of may have ended before the request was published.
/// Requests of such an application wait until the lane has read all that Kafka has of the applications. Others do not wait.
final class ApplicationStage: Stage {
  private let applications: any KnownApplications
  /// Whether Redis is rebuilt, long after the requests were judged.
  private let isRebuilding: Bool
  private var waiting: [ParkedRecord: RequestContent] = [:]
  /// Waiting requests for which the reader was not asked yet.
  private var unasked: [ParkedRecord] = []
  private let retry: Timer
  weak var owner: (any StageOwner)?

  /// - Parameter isRebuilding: whether Redis is rebuilt, long after the requests were judged. Then a stop without an end needs no second look.
  ///   A request that a lane may have judged before it heard of the stop passes, and is ended in its mailbox.
  init(on loop: EventLoop, _ applications: any KnownApplications, isRebuilding: Bool) {
    self.applications = applications
    self.isRebuilding = isRebuilding
    retry = Timer(on: loop)
    retry.handler = { [unowned self] in flush() }
  }

  var isActive: Bool { !applications.table.isEmpty }

  func close() async { retry.close() }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard let stop = stop(of: content) else { return .pass(content) }
    guard stop.isOpen, !isRebuilding else { return .pass(content.stopped(by: stop)) }
    waiting[record] = content
    unasked.append(record)
    return .later
  }

  private func stop(of content: RequestContent) -> ApplicationStop? {
    guard content.entry.kind == .notify else { return nil }
    return content.arena.bytes.withUnsafeBytes { arena in
      // For nearly all requests the hash rules a stop out, and their entries are not read.
      var entry: DeliveryEntryView?
      let stops = applications.table.stops(hash: content.entry.application) {
        entry = DeliveryEntryView(arena[content.entry.span])
        return entry?.application ?? .empty
      }
      guard let entry, let stop = stops?.during(entry.published) else { return nil }
      return isRebuilding && entry.published - stop.from < Self.hearingMilliseconds ? nil : stop
    }
  }

  func flush() {
    guard !unasked.isEmpty else { return }
    let records = unasked
    unasked.removeAll(keepingCapacity: true)
    applications.confirm { [weak self] in self?.confirmed(records, isComplete: $0) }
  }

  private func confirmed(_ records: [ParkedRecord], isComplete: Bool) {
    guard isComplete else {
      unasked += records.filter { waiting[$0] != nil }
      return retry.start(after: Self.retryMilliseconds)
    }
    let passed = records.compactMap { record in
      waiting.removeValue(forKey: record).map { content in (record, stop(of: content).map(content.stopped) ?? content) }
    }
    if !passed.isEmpty { owner?.passed(passed) }
  }

  private static let retryMilliseconds = 500
  /// Every working lane has heard of a stop within this time.
  private static let hearingMilliseconds: Int64 = 5_000

  func drop(_ records: Set<ParkedRecord>) { for record in records { waiting[record] = nil } }
}

extension RequestContent {
  /// The same content, stopped: it goes to no device, and so passes no extension.
  fileprivate func stopped(by stop: ApplicationStop) -> RequestContent {
    var content = self
    (content.stop, content.mutability) = (stop, .fixed)
    return content
  }
}
