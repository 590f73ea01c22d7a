import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Requests for devices, which are judged several at a time.
extension Pipeline: JudgeHandler {
  /// Has a request for a device judged: with others, or alone where it has failed with others.
  func judge(_ slot: Flow.Slot, _ arena: Arena, _ token: ArenaSpan, _ entry: RequestEntry) {
    flow.expect(1, of: slot)
    let request = JudgeRequest(tag: slot, in: arena, token: token, entry, isExpired: entry.end <= WallClock.seconds())
    judging.add(request, alone: records[slot].isSuspect)
  }

  /// Sends what was noted for the judge.
  func send() { judging.send(now: WallClock.seconds()) }

  func notJudged(_ requests: [JudgeRequest], _ error: StoreError) {
    noticed(error)
    for request in requests {
      if error.code == .faulty {
        if requests.count == 1 { fault(request.tag, error.message) }
        records[request.tag].isSuspect = true
      }
      fail(request.tag)
    }
  }

  func judged(_ requests: [JudgeRequest], _ answer: JudgeAnswer) {
    var verdicts = answer.verdicts
    withhold(&verdicts, requests)
    for (index, request) in requests.enumerated() {
      guard let verdict = verdicts[index], let judgement = verdict.judgement(of: request) else {
        if case .unreadable(let reason) = verdicts[index] {
          fault(request.tag, reason)
        } else {
          fault(request.tag, "the judge's answer cannot be read")
        }
        metrics.redisFailures.increment()
        fail(request.tag)
        continue
      }
      apply(verdict, to: request)
      if records[request.tag].isForPerson {
        paging.judged(&records[request.tag], request.token, judgement)
        pageJudged(request.tag)
      } else {
        records[request.tag].judgement = judgement
      }
      finish(request.tag)
    }
    answer.forEachOverflow { index, entries in
      requests[index].arena.bytes.withUnsafeBytes { evict(entries, $0[requests[index].token]) }
    }
    askWaiting()
  }

  /// What a later request of the same call has superseded need not go to the device any more.
  private func withhold(_ verdicts: inout [Verdict?], _ requests: [JudgeRequest]) {
    for index in verdicts.indices.dropFirst() {
      guard case .new(let application) = verdicts[index], let superseded = application.superseded else { continue }
      for earlier in 0..<index {
        guard case .new(var replaced) = verdicts[earlier], replaced.revision == superseded.revision,
          requests[earlier].entry.id == superseded.id.hash64, sameDevice(requests[earlier], requests[index])
        else { continue }
        replaced.presence = nil
        verdicts[earlier] = .new(replaced)
      }
    }
  }

  private func sameDevice(_ one: JudgeRequest, _ other: JudgeRequest) -> Bool {
    one.arena.bytes.withUnsafeBytes { a in other.arena.bytes.withUnsafeBytes { b in a[one.token].elementsEqual(b[other.token]) } }
  }

  private func apply(_ verdict: Verdict, to request: JudgeRequest) {
    request.arena.bytes.withUnsafeBytes { arena in
      let token = arena[request.token]
      let encoded = arena[request.entry.span]
      guard let entry = DeliveryEntryView(encoded) else {
        fault(request.tag, "its delivery entry cannot be read")
        return flow.fail(request.tag)
      }
      let subject = Outcomes.Subject(token: token, entry: entry, record: request.tag)
      switch verdict {
      case .new(let application), .again(let application):
        if let superseded = application.superseded { settle(request.tag, outcomes.collapsed(superseded, by: subject)) }
        if request.isExpired {
          count(.expired, .expired, request)
          settle(request.tag, outcomes.say(.expired, subject, revision: application.revision))
        } else {
          count(.queued, .queued, request)
          if let presence = application.presence { outcomes.deliver(encoded, entry.kind, application.revision, to: presence, token) }
        }
      case .stale(let by):
        count(.collapsed, .collapsed, request)
        settle(request.tag, outcomes.stale(subject, revision: request.entry.revision, by: by.id))
      case .duplicate:
        count(.duplicate, .duplicate, request)
        settle(request.tag, outcomes.say(.duplicate, subject, revision: request.entry.revision))
      case .wrongUser: metrics.count(.otherUser)
      case .unregistered:
        count(.unregistered, .unregistered, request)
        settle(request.tag, outcomes.say(.unregistered, subject, revision: request.entry.revision))
      case .wrongApplication:
        count(.wrongApplication, .rejected, request)
        wrongApplication(request)
      case .unreadable: break  // It was seen to before.
      }
    }
  }

  /// For one device the verdict is that of the record; for a person's devices it is known when all are judged.
  private func count(_ verdict: DeviceVerdict, _ ofRecord: RecordVerdict, _ request: JudgeRequest) {
    metrics.count(verdict)
    if !records[request.tag].isForPerson { records[request.tag].verdict = ofRecord }
  }

  private func wrongApplication(_ request: JudgeRequest) {
    let record = records[request.tag].record
    reader.readAccepted(record) { view in
      let rejection = Rejection(
        .deviceTokenNotForTopic, field: "apns-topic", rule: "The device is registered for another application than the topic names.")
      let (attempts, refusals) = (flow.attempts(request.tag), flow.refusals(request.tag))
      settle(
        request.tag, outcomes.reject(record, rejection, view.envelope, tries: attempts + 1, refusals: refusals, token: request.tag))
    }
  }
}

extension Verdict {
  /// What the journal is to say of it.
  fileprivate func judgement(of request: JudgeRequest) -> JournalJudgement? {
    let own = request.entry.revision
    switch self {
    case .new(let application), .again(let application):
      return JournalJudgement(request.isExpired ? .expired : .kept, revision: application.revision, other: application.superseded)
    case .stale(let by): return JournalJudgement(.stale, revision: own, other: by)
    case .duplicate: return JournalJudgement(.duplicate, revision: own)
    case .wrongUser: return JournalJudgement(.wrongUser, revision: own)
    case .unregistered: return JournalJudgement(.unregistered, revision: own)
    case .wrongApplication: return JournalJudgement(.wrongApplication, revision: own)
    case .unreadable: return nil
    }
  }
}
