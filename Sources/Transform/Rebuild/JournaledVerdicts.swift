import Kafka
import Notifications

/// The journal's facts about the requests in flight of a rebuild, for its stages. Loop-confined.
final class JournaledVerdicts {
  private var tellings: [RecordTicket: JournalAhead.Telling] = [:]

  /// Notes the facts about a request that begins.
  func begin(_ ticket: RecordTicket, _ telling: JournalAhead.Telling) { tellings[ticket] = telling }

  /// Forgets a finished request.
  func finish(_ ticket: RecordTicket) { tellings[ticket] = nil }

  /// The journal's verdict on a request at a device; nil if it has none.
  func verdict(on ticket: RecordTicket, at device: UnsafeRawBufferPointer) -> JournalAhead.Verdict? {
    tellings[ticket]?.verdict(at: device)
  }
}
