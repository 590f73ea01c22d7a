import EventLoop
import JSON
import Kafka
import Notifications
import Worker

/// Publishes the requests of a plan when they are due.
final class LoadPublisher: ProducerHandler {
  private let loop: EventLoop
  private let plan: LoadPlan
  private let names: LoadNames
  private let schedule: LoadSchedule
  private let producer: Producer
  private let topic: ProducerTopic
  private weak var owner: LoadCore?
  private let headers = RecordHeaders()
  private var payload = JSONWriter(capacity: 4096)
  private var timer: Timer?
  private var start = LoadStart(steady: 0, wall: 0)
  private(set) var next = 0
  /// Requests that were given to Kafka's client within ``keptNanoseconds`` of their due time.
  private(set) var kept = 0
  private(set) var duplicates = 0
  /// The duplicate of the last request still has to be given to Kafka's client.
  private var owesDuplicate = false
  private var isFull = false
  /// The trigger of scheduled requests.
  private let trigger: String
  private let filler = [UInt8](repeating: UInt8(ascii: "x"), count: 40_000)

  /// A request that leaves this process later than this after its due time does not keep the schedule.
  static let keptNanoseconds: Int64 = 1_000_000_000
  private static let tickMilliseconds = 5
  private static let duplicateBit: UInt64 = 1 << 62

  init(
    on loop: EventLoop, _ plan: LoadPlan, _ names: LoadNames, _ place: LoadPlace, batchBytes: Int, owner: LoadCore
  ) throws(KafkaError) {
    (self.loop, self.plan, self.names, self.owner) = (loop, plan, names, owner)
    schedule = LoadSchedule(plan.requests)
    trigger = #"{"type":"timeInterval","timeInterval":\#(Double(plan.requests.aheadMilliseconds) / 1000)}"#
    var options = Producer.Options()
    options.batchBytes = batchBytes
    let reports = WeakProducerHandler()
    producer = try Producer(on: loop, place.kafka, options, handler: reports)
    topic = try producer.topic(place.topics.requests)
    reports.owner = self
  }

  /// Begins the schedule.
  func begin(_ start: LoadStart) {
    self.start = start
    timer = Timer(on: loop) { [unowned self] in publishDue() }
    timer?.start(after: 0, repeating: Self.tickMilliseconds)
  }

  /// Whether each request was given to Kafka's client.
  var isDone: Bool { next == schedule.total && !owesDuplicate }

  /// Publishes nothing more.
  func stop() {
    timer?.close()
    timer = nil
  }

  func close() async {
    stop()
    await producer.close(withinMilliseconds: 5_000)
  }

  private func publishDue() {
    while !isFull {
      if owesDuplicate {
        guard produce(next - 1, opaque: UInt64(next - 1) | Self.duplicateBit) else { return }
        (owesDuplicate, duplicates) = (false, duplicates + 1)
        continue
      }
      let now = SteadyClock.nanoseconds() - start.steady
      guard next < schedule.total, schedule.due(next) <= now else { return }
      let number = next
      guard produce(number, opaque: UInt64(number)) else { return }
      next += 1
      if now - schedule.due(number) <= Self.keptNanoseconds { kept += 1 }
      owner?.requestProduced(number)
      owesDuplicate = plan.request(number).isDuplicated
    }
  }

  /// Gives a record to Kafka's client; false if its queue is full.
  private func produce(_ number: Int, opaque: UInt64) -> Bool {
    let request = plan.request(number)
    let key = names.target(request.target)
    headers.removeAll()
    names.application.withBytes { headers.append(RequestHeader.topic.name, $0) }
    names.id(number).withText { headers.append(RequestHeader.id.name, $0) }
    if let slot = request.slot { collapseID(of: request.target, slot).withBytes { headers.append(RequestHeader.collapseID.name, $0) } }
    if request.isScheduled { headers.append(RequestHeader.trigger.name, text: trigger) }
    if let lifetime = plan.requests.lifetimeSeconds {
      headers.append(RequestHeader.expiration.name, text: String(expiration(of: number, lifetime)))
    }
    write(number, request)
    let outcome = key.withBytes { key in
      payload.withUnsafeBytes { producer.produce(topic, key: key, value: $0, headers: headers, opaque: opaque) }
    }
    switch outcome {
    case .taken: return true
    case .full:
      isFull = true
      return false
    case .refused(let error):
      if opaque & Self.duplicateBit == 0 { owner?.requestFailed(number, error) }
      return true
    }
  }

  /// The collapse ids of a person and of a device differ, since only requests of one target have an order.
  private func collapseID(of target: LoadRequest.Target, _ slot: Int) -> Name {
    switch target {
    case .user: "load-user-\(slot)"
    case .device: "load-device-\(slot)"
    }
  }

  private func expiration(of number: Int, _ lifetime: Int) -> Int64 {
    (start.wall + schedule.due(number) / 1_000_000) / 1000 + Int64(lifetime)
  }

  private func write(_ number: Int, _ request: LoadRequest) {
    payload.reset()
    payload.openObject()
    payload.key("aps")
    payload.openObject()
    payload.key("alert")
    payload.openObject()
    payload.member("title", "Load")
    payload.member("body", "Request \(number)")
    payload.closeObject()
    if request.isMutable { payload.member("mutable-content", 1) }
    payload.closeObject()
    // The rest of the size, without the quotes, the name and the braces.
    let rest = request.size - payload.count - 11
    if rest > 0 {
      payload.key("filler")
      filler.withUnsafeBytes { payload.string(utf8: UnsafeRawBufferPointer(rebasing: $0.prefix(rest))) }
    }
    payload.closeObject()
  }

  // MARK: The producer

  func producerDelivered(_ reports: [DeliveryReport]) {
    for report in reports where report.opaque & Self.duplicateBit == 0 {
      if let error = report.error { owner?.requestFailed(Int(report.opaque), error) } else { owner?.requestPublished(Int(report.opaque)) }
    }
  }

  func producerHasRoom() {
    isFull = false
    if timer != nil { publishDue() }
  }

  func producerFailed(_ error: KafkaError) {}
}
