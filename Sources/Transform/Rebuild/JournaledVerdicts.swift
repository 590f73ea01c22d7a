import Kafka
import Notifications

/// The journal's facts about the requests in flight of a rebuild, for its stages.
final class JournaledVerdicts {
  private var tellings: [RecordTicket: JournalAhead.Telling] = [:]
  private var repeats = RepeatedIDs()

  /// Notes the facts about a request that begins.
  func begin(_ ticket: RecordTicket, _ telling: JournalAhead.Telling) { tellings[ticket] = telling }

  /// Forgets a finished request.
  func finish(_ ticket: RecordTicket) { tellings[ticket] = nil }

  /// The journal's verdict on a request at a device; nil if it has none.
  func verdict(on ticket: RecordTicket, at device: UnsafeRawBufferPointer) -> JournalAhead.Verdict? {
    tellings[ticket]?.verdict(at: device)
  }

  /// More than one record has this apns-id at a device.
  func foundRepeat(of id: UInt64, at device: UnsafeRawBufferPointer) { repeats.insert(id, DeviceToken.hash(device)) }

  /// An event says that more than one record has this apns-id at a device.
  func foundRepeat(of id: UInt64, at device: String) { repeats.insert(id, StableHash.hash(device)) }

  /// Whether more than one record may have this apns-id at a device.
  func mayRepeat(_ id: UInt64, at device: String) -> Bool { repeats.contains(id, StableHash.hash(device)) }
}

/// Which apns-ids came to which devices more than once, by their hashes. A value.
struct RepeatedIDs {
  private var hashes: Set<UInt64> = []
  private let limit: Int
  private var isFull = false

  /// - Parameter limit: beyond this number every id counts as repeated.
  init(limit: Int = 500_000) { self.limit = limit }

  /// An apns-id came to a device again.
  mutating func insert(_ id: UInt64, _ device: UInt64) {
    guard !isFull else { return }
    hashes.insert(Self.hash(id, device))
    isFull = hashes.count >= limit
    if isFull { hashes = [] }
  }

  /// Whether an apns-id may have come to a device more than once.
  func contains(_ id: UInt64, _ device: UInt64) -> Bool { isFull || hashes.contains(Self.hash(id, device)) }

  private static func hash(_ id: UInt64, _ device: UInt64) -> UInt64 { id &* 0x9E37_79B9_7F4A_7C15 ^ device }
}
