import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import Worker

/// Takes HTTP requests, produces their records, and answers when Kafka has them.
///
/// | path | answer |
/// |---|---|
/// | `POST /v1/requests` | 202 when Kafka has the request; for many lines a line each |
/// | `GET /v1/requests/<apns-id>` | what became of it |
final class IngressCore {
  private static let path = "/v1/requests"
  /// The lines of one turn, so that a body of many does not delay the other requests.
  private static let linesPerTurn = 128
  private static let (tickMilliseconds, ticksPerSecond) = (100, 10)
  /// How long a client may take to read an answer, since unsent answers are memory that nothing else bounds.
  private static let writeMilliseconds = 5_000
  /// The part of the time to end that is reserved for Kafka.
  private static let partingMilliseconds = 1_000
  /// The time before that in which the last answers are sent.
  private static let answeringMilliseconds = 500

  private let loop: EventLoop
  private let settings: IngressSettings
  private let logger: Logger
  private let health: Health
  private let metrics: IngressMetrics
  private let producer: Producer
  private let topic: ProducerTopic
  private let headers = RecordHeaders()
  private var publishers: Publishers
  private var reader: RequestReader
  private var server: HTTPServer?
  private var flow: IngressFlow
  /// Whether Kafka's queue had no room for a request. The memory for bodies may be full too, but reading their lines frees that.
  private var isKafkaFull = false
  private var submissions: [UInt64: Submission] = [:]
  private var heldBytes = 0
  /// The submissions with lines that are not read, in the order of their turns.
  private var queue: [UInt64] = []
  /// The requests that Kafka has not acknowledged: the submission, and the index in it.
  private var inFlight: [UInt64: (submission: UInt64, index: Int)] = [:]
  private var questions: [UInt64: (exchange: Exchange, id: NotificationID)] = [:]
  private var lastNumber: UInt64 = 0
  private var isDraining = false
  /// When every request is answered, since the connections are cut soon after.
  private var lastDeadline = UInt64.max
  private let (turn, pause, ticker): (Timer, Timer, Timer)
  private var turnEnd: TurnEnd?
  /// Whether the queue is served again in the next turn.
  private var isTurnDue = false
  private var ticks = 0
  /// The HTTP requests that reached no route and are counted, by status.
  private var unrouted: [Int: Int] = [:]
  weak var owner: IngressLane?

  init(on loop: EventLoop, _ settings: IngressSettings, batchBytes: Int, logger: Logger, health: Health, _ metrics: IngressMetrics)
    throws(KafkaError)
  {
    (self.loop, self.settings, self.logger, self.health, self.metrics) = (loop, settings, logger, health, metrics)
    publishers = Publishers(settings.admission, isLoopback: settings.listen.isLoopback)
    reader = RequestReader(settings.limits)
    flow = IngressFlow(answerMilliseconds: settings.answerMilliseconds, pauseMilliseconds: settings.pauseMilliseconds)
    var options = Producer.Options()
    options.batchBytes = batchBytes
    options.messageTimeoutMilliseconds = settings.sendMilliseconds
    (options.maximumRecords, options.maximumBytes) = (settings.records, settings.bytes)
    let reports = Reports()
    producer = try Producer(on: loop, settings.kafka, options, handler: reports)
    topic = try producer.topic(settings.topics.requests)
    (turn, pause, ticker) = (Timer(on: loop), Timer(on: loop), Timer(on: loop))
    reports.core = self
    producer.onLog = { [logger] in logger.log($0) }
    turn.handler = { [unowned self] in serveQueue() }
    // At the end of a turn it need not wait for the millisecond that a timer waits which its own handler starts.
    turnEnd = loop.onTurnEnd { [unowned self] in
      guard isTurnDue else { return }
      isTurnDue = false
      turn.start(after: 0)
    }
    pause.handler = { [unowned self] in shed() }
    ticker.handler = { [unowned self] in tick() }
  }

  /// The producer keeps its handler while it is open, and the core keeps the producer.
  private final class Reports: ProducerHandler {
    weak var core: IngressCore?
    func producerDelivered(_ reports: [DeliveryReport]) { core?.delivered(reports) }
    func producerHasRoom() { core?.kafkaHasRoom() }
    func producerFailed(_ error: KafkaError) { core?.failed(error) }
  }

  /// Listens; returns the address.
  func listen() throws(EventLoopError) -> SocketAddress {
    var configuration = settings.server
    (configuration.replacesSilent, configuration.readsWhileHandling) = (true, false)
    (configuration.maximumBufferedBytes, configuration.writeMilliseconds) = (settings.bytes, Self.writeMilliseconds)
    configuration.refusal = { RequestAnswer(unrouted: $0, $1).response }
    var routes = HTTPRoutes()
    routes.add(.post, Self.path) { [unowned self] in publish($0, $1) }
    routes.add(.get, prefix: Self.path + "/") { [unowned self] in explain($0, $1) }
    let server = try HTTPServer(on: loop, at: settings.listen, configuration: configuration, routes: routes)
    self.server = server
    ticker.start(after: Self.tickMilliseconds, repeating: Self.tickMilliseconds)
    return server.localAddress
  }

  // MARK: Publishing

  private func publish(_ request: HTTPRequest, _ responder: HTTPResponder) {
    guard let exchange = exchange(of: request, responder) else { return }
    guard flow.phase != .shedding else { return respond(.unsent, exchange) }
    let deadline = min(flow.deadline(ofRead: exchange.arrived), lastDeadline)
    let traces = request.headers.values(of: "traceparent")
    let trace = traces.count == 1 ? traces[0] : nil
    do throws(RequestAnswer) {
      try RequestReader.checkFields(of: request)
      let admitted: RequestReader.Admitted
      switch BodyForm(request) {
      case .lines: return begin(Submission(exchange, lines: request.body, trace: trace, deadline: deadline))
      case .payload: admitted = try reader.read(payloadOf: request, of: exchange.publisher)
      case .object:
        let read = request.body.withUnsafeBytes { result(of: $0, exchange, trace) }
        admitted = try read.get()
      }
      begin(Submission(exchange, admitted, deadline: deadline))
    } catch {
      respond(error, exchange)
    }
  }

  /// Checks who has sent a request; nil if it is refused.
  private func exchange(of request: HTTPRequest, _ responder: HTTPResponder) -> Exchange? {
    let arrived = loop.milliseconds()
    do throws(RequestAnswer) {
      let publisher = try publishers.publisher(of: request, now: WallClock.seconds())
      return Exchange(publisher: publisher, responder: responder, arrived: arrived)
    } catch {
      respond(error, Exchange(publisher: Publisher(), responder: responder, arrived: arrived))
      return nil
    }
  }

  private func begin(_ submission: Submission) {
    lastNumber += 1
    submissions[lastNumber] = submission
    heldBytes += submission.weight
    queue.append(lastNumber)
    // The first in the queue has its turn at once.
    if queue.count == 1 { serveQueue() }
    if heldBytes >= settings.bytes { becomeFull() }
  }

  /// Reads lines of the first submission, which then waits behind the others.
  private func serveQueue() {
    guard !isKafkaFull, !queue.isEmpty else { return }
    let number = queue.removeFirst()
    if let submission = submissions[number] {
      switch advance(submission, number) {
      case .isRead: finishIfComplete(number)
      case .hasMore: queue.append(number)
      case .isFull:
        queue.insert(number, at: 0)
        isKafkaFull = true
        return becomeFull()
      }
    }
    isTurnDue = !queue.isEmpty
  }

  private enum Progress { case isRead, hasMore, isFull }

  private func advance(_ submission: Submission, _ number: UInt64) -> Progress {
    for _ in 0..<Self.linesPerTurn {
      if let admitted = submission.pending {
        guard produce(admitted, submission, number) else { return .isFull }
        submission.pending = nil
        continue
      }
      let next = submission.withNextLine { result(of: $0, submission.exchange, submission.trace) }
      switch next {
      case .success(let admitted)?: submission.pending = admitted
      case .failure(let answer)?: submission.add(answer)
      case nil:
        submission.finishReading()
        return .isRead
      }
    }
    return .hasMore
  }

  private func result(of object: UnsafeRawBufferPointer, _ exchange: Exchange, _ trace: String?) -> Result<
    RequestReader.Admitted, RequestAnswer
  > {
    Result { () throws(RequestAnswer) in
      try reader.read(object, of: exchange.publisher, trace: trace, now: WallClock.milliseconds())
    }
  }

  /// Gives a request to Kafka's queue; false if that is full.
  private func produce(_ admitted: RequestReader.Admitted, _ submission: Submission, _ number: UInt64) -> Bool {
    let request = admitted.request
    for (name, value) in request.headers { headers.append(name, value) }
    lastNumber += 1
    let outcome = request.key.withUnsafeBytes { key in
      withOptionalBytes(request.value) { producer.produce(topic, key: key, value: $0, headers: headers, opaque: lastNumber) }
    }
    switch outcome {
    case .taken: inFlight[lastNumber] = (number, submission.add(admitted))
    case .full:
      headers.removeAll()
      return false
    case .refused(let error):
      headers.removeAll()
      conclude(submission, submission.add(admitted), error.code)
    }
    return true
  }

  private func delivered(_ reports: [DeliveryReport]) {
    for report in reports {
      guard let (number, index) = inFlight.removeValue(forKey: report.opaque), let submission = submissions[number] else { continue }
      conclude(submission, index, report.failure)
      finishIfComplete(number)
    }
  }

  private func conclude(_ submission: Submission, _ index: Int, _ failure: KafkaError.Code?) {
    guard let failure else { return submission.conclude(index) }
    metrics.kafkaErrors.increment(failure.label)
    let rule = "The record is larger than Kafka's limit (max.message.bytes)."
    submission.conclude(
      index, failure == .messageTooLarge ? RequestAnswer(.contentTooLarge, "PayloadTooLarge", "body", rule) : .unacknowledged)
  }

  // MARK: Answers

  private func finishIfComplete(_ number: UInt64) {
    guard let submission = submissions[number], submission.isComplete else { return }
    submissions[number] = nil
    heldBytes -= submission.weight
    submission.respond { note($0, $1, submission.exchange) }
    observe(submission.exchange)
    resumeIfRoom()
  }

  private func respond(_ answer: RequestAnswer, _ exchange: Exchange) {
    exchange.responder.respond(answer.response)
    note(answer, nil, exchange)
    observe(exchange)
  }

  private func observe(_ exchange: Exchange) { metrics.seconds.observe(Double(loop.milliseconds() - exchange.arrived) / 1000) }

  /// Counts an answer, and logs it.
  private func note(_ answer: RequestAnswer, _ application: Name?, _ exchange: Exchange) {
    metrics.count(answer.status, application)
    if settings.logsAccess { logger.access("request", accessFields(answer, application, exchange)) }
  }

  private func accessFields(_ answer: RequestAnswer, _ application: Name?, _ exchange: Exchange) -> [(
    name: String, value: any JSONRepresentable
  )] {
    let fields = [
      ("apnsId", answer.id), ("application", application?.text), ("publisher", exchange.publisher.token?.publisher?.text),
      ("reason", answer.reason), ("field", answer.field),
    ]
    return [("status", answer.status.rawValue), ("ms", Int(loop.milliseconds() - exchange.arrived))]
      + fields.compactMap { name, value in value.map { (name, $0) } }
  }

  // MARK: Room

  /// Stops reading. After a second it reads again, and refuses requests at once until Kafka has room.
  private func becomeFull() {
    switch flow.becomeFull(at: loop.milliseconds(), turn: loop.turns) {
    case .pause(let milliseconds):
      server?.isPaused = true
      metrics.pauses.increment()
      pause.start(after: milliseconds)
    case .refuse: warn()
    case nil: break
    }
  }

  private func shed() {
    guard flow.endPause(turn: loop.turns) else { return }
    warn()
    server?.isPaused = false
  }

  private func warn() { logger.warning("Kafka is too slow; requests are answered 503 until it has room") }

  /// Takes requests again when half of each limit is free. Then all connections that were not read have their turn.
  private func resumeIfRoom() {
    guard flow.phase != .open, producer.inFlight <= settings.records / 2, max(producer.bytesInFlight, heldBytes) <= settings.bytes / 2
    else { return }
    flow.becomeOpen(turn: loop.turns)
    isKafkaFull = false
    pause.stop()
    server?.isPaused = false
    isTurnDue = true
  }

  private func kafkaHasRoom() {
    isKafkaFull = false
    resumeIfRoom()
    isTurnDue = true
  }

  /// Answers what is due.
  private func tick() {
    let now = loop.milliseconds()
    for (number, submission) in submissions where submission.deadline <= now {
      submission.giveUp()
      finishIfComplete(number)
    }
    // Nothing else does if all requests were answered while only the memory was full.
    resumeIfRoom()
    ticks += 1
    guard ticks % Self.ticksPerSecond == 0, let server else { return }
    LaneProducers.show([(producer, metrics.producer)], health)
    metrics.connections.set(server.statistics.open)
    metrics.waiting.set(submissions.count + questions.count)
    let refused = server.statistics.refused.merging([408: server.statistics.timedOut], uniquingKeysWith: +)
    for (status, count) in refused where count > unrouted[status, default: 0] {
      metrics.count(HTTPStatus(rawValue: status), nil, by: count - unrouted[status, default: 0])
      unrouted[status] = count
    }
  }

  private func failed(_ error: KafkaError) {
    metrics.kafkaErrors.increment(error.code.label)
    logger.warning("Kafka client error", ["error": "\(error)"])
    guard error.isFatal else { return }
    health.set("client", ready: false, "\(error)")
    owner?.failed(error)
  }

  // MARK: Fates

  private func explain(_ request: HTTPRequest, _ responder: HTTPResponder) {
    guard let exchange = exchange(of: request, responder) else { return }
    guard let id = NotificationID(String(request.path.dropFirst(Self.path.count + 1))) else {
      let rule = "An apns-id is a UUID: 8-4-4-4-12 hexadecimal digits."
      return respond(RequestAnswer(.badRequest, "BadMessageId", "apns-id", rule), exchange)
    }
    let target = request.queryParameter("target").map { Name($0) }
    guard target.map({ $0.withBytes { Target($0) != nil } }) ?? true else {
      return respond(RequestAnswer(.badRequest, "BadDeviceToken", "target", "A target is device:<token> or user:<id>."), exchange)
    }
    guard !isDraining, let owner else { return respond(.unavailable("This worker is ending: ask again."), exchange) }
    lastNumber += 1
    questions[lastNumber] = (exchange, id)
    owner.find(id, target: target, for: exchange.publisher, number: lastNumber)
  }

  /// Answers a question.
  func found(_ fate: Result<Fate, RequestAnswer>, _ number: UInt64) {
    guard let (exchange, id) = questions.removeValue(forKey: number) else { return }
    switch fate {
    case .failure(let answer): respond(answer, exchange)
    case .success(let fate):
      exchange.responder.respond(HTTPResponse(.ok, text: fate.json + "\n", contentType: "application/json"))
      note(RequestAnswer(.ok, id: id.description), fate.applications.first, exchange)
      observe(exchange)
    }
  }

  // MARK: The end

  /// Answers all requests, and closes. Connections are first told to close, so that no client sends a request to a closed one.
  func drain(withinMilliseconds milliseconds: Int) async {
    isDraining = true
    let end = Deadline(on: loop, after: milliseconds)
    server?.announceEnd()
    let now = loop.milliseconds()
    lastDeadline = now + UInt64(max(0, milliseconds - Self.partingMilliseconds - Self.answeringMilliseconds))
    let latest = min(now + UInt64(max(0, milliseconds / 2)), lastDeadline)
    for submission in submissions.values { submission.deadline = min(submission.deadline, latest) }
    for question in questions.values { respond(.unavailable("This worker is ending: ask again."), question.exchange) }
    questions = [:]
    let quiet = Deadline(on: loop, after: min(milliseconds / 4, settings.quietMilliseconds))
    while quiet.left > 0, let server, server.statistics.open > 0 { await loop.sleep(milliseconds: 20) }
    await server?.close(withinMilliseconds: max(0, end.left - Self.partingMilliseconds))
    turnEnd?.close()
    for timer in [ticker, turn, pause] { timer.close() }
    await producer.close(withinMilliseconds: end.left(atLeast: Self.partingMilliseconds / 2))
    (owner, server) = (nil, nil)
  }
}
