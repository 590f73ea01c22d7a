import Glibc
import HTTP
import JSON
import Notifications

/// An HTTP request that is not answered yet.
struct Exchange {
  let publisher: Publisher
  let responder: HTTPResponder
  /// In milliseconds of the loop's clock.
  let arrived: UInt64
}

/// A POST whose requests are on their way to Kafka.
final class Submission {
  /// One request of the body. Its answer is nil while Kafka has not acknowledged it.
  private typealias Item = (line: Int, id: String, facts: RequestToSend.Facts?, answer: RequestAnswer?)

  /// The most lines of a body. Each has an answer.
  static let maximumLines = 1_000

  let exchange: Exchange
  /// The trace context of the HTTP request.
  let trace: String?
  /// When it is answered in any case.
  var deadline: UInt64
  /// A request that Kafka's queue has no room for yet.
  var pending: RequestReader.Admitted?
  /// The bytes that it keeps.
  let weight: Int
  private let isMany: Bool
  private var body: [UInt8]
  private var (position, line) = (0, 0)
  private var items: [Item] = []
  private var isRead = false
  /// The requests that Kafka has not acknowledged.
  private var open = 0

  /// Makes it for a body of many lines.
  init(_ exchange: Exchange, lines body: [UInt8], trace: String?, deadline: UInt64) {
    (self.exchange, self.body, self.trace, self.deadline) = (exchange, body, trace, deadline)
    (isMany, weight) = (true, body.count)
  }

  /// Makes it for a single request.
  init(_ exchange: Exchange, _ request: RequestReader.Admitted, deadline: UInt64) {
    (self.exchange, body, trace, self.deadline, pending) = (exchange, [], nil, deadline, request)
    (isMany, weight) = (false, request.request.value?.count ?? 0)
  }

  /// Calls `body` with the next line that is not blank; nil after the last one, or the last that is answered.
  func withNextLine<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result? {
    body.withUnsafeBytes { bytes in
      while position < bytes.count, let base = bytes.baseAddress {
        let (start, left) = (base + position, bytes.count - position)
        let count = memchr(start, 0x0A, left).map { UnsafeRawPointer($0) - start } ?? left
        (line, position) = (line + 1, position + count + 1)
        let text = UnsafeRawBufferPointer(start: start, count: count)
        guard text.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { continue }
        guard items.count < Self.maximumLines else {
          add(RequestAnswer(LineError("a body has at most \(Self.maximumLines) lines; the rest was not read")))
          return nil
        }
        return read(text)
      }
      return nil
    }
  }

  /// Nothing more is read of the body.
  func finishReading() {
    if isMany, items.isEmpty { items.append((1, "", nil, RequestAnswer(LineError("the body has no line")))) }
    (isRead, position) = (true, body.count)
  }

  /// Adds the answer to the present line.
  func add(_ answer: RequestAnswer) { items.append((line, "", nil, answer)) }

  /// Adds a request that Kafka has been given; returns its index.
  func add(_ admitted: RequestReader.Admitted) -> Int {
    items.append((line, admitted.request.id, admitted.facts, nil))
    open += 1
    return items.count - 1
  }

  /// Kafka has a request, or does not.
  func conclude(_ index: Int, _ failure: RequestAnswer? = nil) {
    guard items.indices.contains(index), items[index].answer == nil else { return }
    open -= 1
    var answer = failure ?? RequestAnswer(.accepted, id: items[index].id, items[index].facts?.warnings ?? [])
    answer.id = items[index].id
    items[index].answer = answer
  }

  /// Whether every request has an answer.
  var isComplete: Bool { isRead && open == 0 && pending == nil }

  /// Answers the rest. What Kafka was given may have arrived. The others were not published.
  func giveUp() {
    for index in items.indices { conclude(index, .unacknowledged) }
    if pending != nil { add(.unsent) }
    pending = nil
    while withNextLine({ _ in true }) != nil { add(.unsent) }
    finishReading()
  }

  /// Sends the response.
  ///
  /// - Parameter note: gets each answer and its application.
  func respond(_ note: (RequestAnswer, _ application: Name?) -> Void) {
    let answers = items.map { (line: $0.line, answer: $0.answer ?? .unsent) }
    for (item, answer) in zip(items, answers) { note(answer.answer, item.facts?.application) }
    guard isMany else { return exchange.responder.respond((answers.first?.answer ?? .unsent).response) }
    let statuses = Set(answers.map(\.answer.status))
    exchange.responder.respond(
      HTTPResponse(
        statuses.count == 1 ? answers[0].answer.status : .multiStatus,
        text: answers.map { $0.answer.json(line: $0.line).text + "\n" }.joined(), contentType: "application/x-ndjson"))
  }
}
