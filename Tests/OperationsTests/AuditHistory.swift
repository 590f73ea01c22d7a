import Notifications

@testable import Operations

/// What the topics say in a test, and what the judges find in it.
///
/// Times are milliseconds after a beginning; reading begins an hour after it. Requests lie in partition 0, events in partition 1.
struct AuditHistory {
  static let beginning: Int64 = 1_700_000_000_000
  static let hour: Int64 = 3_600_000

  var facts: [AuditFact] = []
  var rules = AuditRules(
    now: beginning + hour, grace: 30_000, clockSlack: 5_000, takeover: 60_000, beginsAtBeginning: true,
    requests: [0: .init(0..<1_000, since: beginning)])

  static func id(_ number: Int) -> NotificationID { NotificationID(high: 7, low: UInt64(number)) }

  /// A request of the id `id`, at the offset `at` unless said otherwise.
  ///
  /// - Parameters:
  ///   - device: whom it is for; nil: a person.
  ///   - collapse: the number of a collapse id; nil: the id is the identifier.
  ///   - end: when it may not be shown any more; a day later unless said otherwise.
  mutating func publish(
    _ id: Int, for device: UInt64? = 1, collapse: UInt64? = nil, offset: Int64? = nil, source: Int64? = nil, at time: Int64 = 0,
    end: Int64 = 86_400_000, _ flags: AuditFact.Flags = []
  ) {
    var fact = self.fact(.request, id, device ?? 0, collapse, source ?? offset ?? Int64(id), time)
    fact.flags.formUnion(flags)
    if device == nil { fact.flags.insert(.isForUser) }
    fact.offset = offset ?? Int64(id)
    fact.partition = 0
    fact.number = Self.beginning + end
    facts.append(fact)
  }

  /// Two further requests come to the device, long after the others and far apart: what it was not given before is overlooked.
  mutating func deliverLaterOnes() {
    for id in 3...4 {
      publish(id, at: Int64(id) * 600_000)
      tell(.queued, id, at: Int64(id) * 600_000)
      tell(.delivered, id, at: Int64(id) * 600_000 + 10)
    }
  }

  /// An event of a request on a device (0: none).
  mutating func tell(
    _ kind: AuditFact.Kind, _ id: Int, on device: UInt64 = 1, collapse: UInt64? = nil, source: Int64? = nil, at time: Int64,
    number: Int64 = 0, worker: UInt32 = 1, statement: UInt64? = nil, _ flags: AuditFact.Flags = []
  ) {
    var fact = self.fact(kind, id, device, collapse, source ?? Int64(id), time)
    fact.flags.formUnion(flags)
    fact.partition = 1
    fact.offset = Int64(facts.count)
    fact.number = number
    fact.worker = worker
    // As the writers make it: from what happened, to whom, and where the request came from.
    var hasher: UInt64 = 14_695_981_039_346_656_037
    for part in [UInt64(kind.rawValue), UInt64(id), device, UInt64(bitPattern: fact.sourceOffset), UInt64(bitPattern: number)] {
      hasher = (hasher ^ part) &* 1_099_511_628_211
    }
    fact.statement = statement ?? hasher
    facts.append(fact)
  }

  private func fact(_ kind: AuditFact.Kind, _ id: Int, _ device: UInt64, _ collapse: UInt64?, _ source: Int64, _ time: Int64) -> AuditFact {
    var fact = AuditFact(kind)
    if kind != .registered, kind != .unregisteredDevice {
      fact.id = Self.id(id)
      fact.identifier = collapse.map { $0 + 1_000_000 } ?? UInt64(id) + 1
      fact.sourceOffset = source
      fact.sourcePartition = 0
      fact.revision = UInt64(Self.beginning + source)
      fact.flags = .isOfTopic
    }
    fact.device = device
    fact.time = Self.beginning + time
    return fact
  }

  /// What both judges find, whatever order the facts come in.
  func findings(limit: Int = 20) -> AuditFindings {
    var findings = AuditFindings(limit: limit)
    var requests = facts.filter { $0.kind != .registered && $0.kind != .unregisteredDevice }.shuffled()
    var devices = facts.filter { $0.device != 0 && $0.kind.isJudgedByDevice }.shuffled()
    RequestJudge(rules: rules).judge(&requests, &findings) { devices.append($0) }
    DeviceJudge(rules: rules).judge(&devices, &findings)
    return findings
  }

  /// The kinds of violation that are found, each as often as it is found.
  var violations: [Violation.Kind] { findings().violations.map(\.kind) }

  /// How the requests ended.
  var outcomes: [AuditFindings.Outcome: Int] { findings().outcomes }
}
