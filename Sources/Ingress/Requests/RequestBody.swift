import Calendars
import HTTP
import JSON
import Notifications

/// The form of an HTTP request's body.
enum BodyForm {
  /// One object, as a line of `carillon publish --lines`.
  case object
  /// An APNs payload; the HTTP request has the headers of APNs.
  case payload
  /// Many objects, one a line.
  case lines

  private static let typesOfLines: Set<Name> = [
    "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
  ]

  /// The form of a request, by its headers.
  init(_ request: HTTPRequest) {
    let type = request.headers["Content-Type"].map { $0.prefix { $0 != ";" && $0 != " " }.lowercased() } ?? ""
    let isPayload = request.headers.names.contains { Name($0.lowercased()).starts(with: "apns-") }
    self = Self.typesOfLines.contains(Name(type)) ? .lines : isPayload ? .payload : .object
  }
}

/// Reads requests out of bodies, and checks them by every rule. One per lane.
struct RequestReader {
  /// A request that keeps every rule, and may be published.
  typealias Admitted = (request: RequestToSend, facts: RequestToSend.Facts)

  let limits: RequestLimits
  private var times = DueTimes()

  /// The most headers of a request, and the most bytes of their names and values. They are those of an HTTP request.
  private static let (maximumHeaders, maximumHeaderBytes) = (100, 16_384)
  private static let own: StaticString = "carillon-"

  init(_ limits: RequestLimits) { self.limits = limits }

  /// Refuses header fields that only the cluster may write, whatever the body's form.
  static func checkFields(of request: HTTPRequest) throws(RequestAnswer) {
    for name in request.headers.names where Name(name.lowercased()).starts(with: own) { throw refusal(ofOwn: name.lowercased()) }
  }

  private static func refusal(ofOwn name: String) -> RequestAnswer {
    let rule = "Headers that begin with carillon- are the cluster's own."
    return RequestAnswer(.badRequest, "BadRequestParams", PrintedText.echo(name), rule)
  }

  /// Reads an object.
  ///
  /// - Parameters:
  ///   - trace: the trace context of the HTTP request, for an object without one.
  ///   - now: milliseconds since 1970.
  mutating func read(_ object: UnsafeRawBufferPointer, of publisher: Publisher, trace: String?, now: Int64) throws(RequestAnswer)
    -> Admitted
  {
    var draft: RequestDraft
    do throws(LineError) { draft = try RequestLine.read(object, now: now) } catch {
      let rule = "an APNs payload comes with the headers of APNs, apns-topic and target; in an object it is the member 'payload'"
      throw RequestAnswer(error.field == "aps" ? LineError("aps", rule) : error)
    }
    if draft.headers[RequestHeader.traceparent] == nil { draft.headers[RequestHeader.traceparent] = trace }
    return try admit(draft, publisher)
  }

  /// Reads an APNs payload with the headers of the HTTP request. Headers that proxies and clients add are none of the record's.
  mutating func read(payloadOf request: HTTPRequest, of publisher: Publisher) throws(RequestAnswer) -> Admitted {
    var draft = RequestDraft()
    draft.payload = request.body.isEmpty ? nil : request.body
    for given in request.headers.names {
      let name = Name(header: given)
      let isAPNs = Name(given.lowercased()).starts(with: "apns-")
      guard isAPNs || name.withBytes({ RequestHeader.named($0) != nil }) else { continue }
      let values = request.headers.values(of: given)
      guard values.count == 1 else {
        // As in a record: without one.
        if name == Name(RequestHeader.traceparent) { continue }
        throw RequestAnswer(.badRequest, "DuplicateHeaders", name.text, "A header of a request stands once.")
      }
      if name == Name(RequestHeader.target) { draft.target = Name(values[0]) } else { draft.headers[name] = values[0] }
    }
    return try admit(draft, publisher)
  }

  private mutating func admit(_ draft: RequestDraft, _ publisher: Publisher) throws(RequestAnswer) -> Admitted {
    let headerBytes = draft.headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    guard draft.headers.count <= Self.maximumHeaders, headerBytes <= Self.maximumHeaderBytes else {
      throw RequestAnswer(
        .contentTooLarge, "PayloadTooLarge", "headers", "A request has at most 100 headers, of 16,384 bytes together.")
    }
    if let own = draft.headers.keys.first(where: { Name($0.text.lowercased()).starts(with: Self.own) }) {
      throw Self.refusal(ofOwn: own.text)
    }
    guard draft.count == 1 else { throw RequestAnswer(LineError("identifiers", "an object names one identifier; send an object for each")) }
    guard draft.hasEffect else { throw RequestAnswer(LineError(RequestDraft.effectRule)) }
    let request = draft.records(line: 0)[0]
    let facts: RequestToSend.Facts
    do throws(Rejection) { facts = try request.check(limits, &times) } catch {
      // An apns-id that is no UUID identifies nothing.
      throw RequestAnswer(error, id: NotificationID(request.id)?.description)
    }
    if let refusal = publisher.refusal(of: facts) { throw refusal }
    return (request, facts)
  }
}
