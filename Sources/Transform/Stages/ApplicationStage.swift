import EventLoop
import Notifications
import Store
import Worker

/// Who reads the applications, as the stage asks; `ApplicationsReader` says what it answers. Loop-confined.
protocol KnownApplications: AnyObject {
  var table: StoppedApplications { get }
  func confirm(_ body: @escaping (Bool) -> Void)
}

extension ApplicationsReader: KnownApplications {}

/// Finds out whether a request was published while its application was stopped: what was goes to no device. Loop-confined.
///
/// A removal takes something off a screen, and passes. A stop that goes on as far as the lane knows may have ended before the request was
/// published: such requests wait until the lane has read all that Kafka has of the applications. Nobody else's wait for that.
final class ApplicationStage: Stage {
  private let applications: any KnownApplications
  /// Redis is rebuilt, long after the requests were judged.
  private let isRebuilding: Bool
  private var waiting: [Flow.Parked: RequestContent] = [:]
  /// Those for whom nobody has been asked yet.
  private var unasked: [Flow.Parked] = []
  private let retry: Timer
  weak var owner: (any StageOwner)?

  /// - Parameter isRebuilding: Redis is rebuilt, long after the requests were judged: then a stop that goes on needs no second look, and what
  ///   a lane may have judged before it heard of a stop is judged as if it had; what of that still waits is ended where it waits.
  init(on loop: EventLoop, _ applications: any KnownApplications, isRebuilding: Bool) {
    self.applications = applications
    self.isRebuilding = isRebuilding
    retry = Timer(on: loop)
    retry.handler = { [unowned self] in flush() }
  }

  var isActive: Bool { !applications.table.isEmpty }

  func close() async { retry.close() }

  func take(_ record: Flow.Parked, _ content: RequestContent) -> StageAnswer {
    guard let stop = stop(of: content) else { return .pass(content) }
    guard stop.isOpen, !isRebuilding else { return .pass(content.stopped(by: stop)) }
    waiting[record] = content
    unasked.append(record)
    return .later
  }

  private func stop(of content: RequestContent) -> ApplicationStop? {
    guard content.entry.kind == .notify else { return nil }
    return content.arena.bytes.withUnsafeBytes { arena in
      // The hash tells of nearly all requests that they have nothing to do with it, and their entries are not read.
      var entry: DeliveryEntryView?
      let stops = applications.table.stops(hash: content.entry.application) {
        entry = DeliveryEntryView(arena[content.entry.span])
        return entry?.application ?? UnsafeRawBufferPointer(start: nil, count: 0)
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

  private func confirmed(_ records: [Flow.Parked], isComplete: Bool) {
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
  /// Within this time every lane that works has heard of a stop.
  private static let hearingMilliseconds: Int64 = 5_000

  func drop(_ records: Set<Flow.Parked>) { for record in records { waiting[record] = nil } }
}

extension RequestContent {
  /// The same, which goes to no device, and so passes no extension.
  fileprivate func stopped(by stop: ApplicationStop) -> RequestContent {
    var content = self
    (content.stop, content.mutability) = (stop, .fixed)
    return content
  }
}
