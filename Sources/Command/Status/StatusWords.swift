import Notifications
import Operations
import Store
import Worker

/// Texts of problems and remarks, with what to do.
enum StatusWords {
  static func problem(_ problem: StatusProblem) -> String {
    switch problem {
    case .kafkaAway(let reason): "Kafka does not answer at \(TerminalText.visible(reason))"
    case .redisAway(let reason): "Redis does not answer: \(TerminalText.visible(reason))"
    case .topicMissing(let topic): "there is no topic \(topic): 'carillon topics create' makes it"
    case .topicDiffers(let topic, let differences):
      "\(topic) \(differences.map(TerminalText.visible).joined(separator: ", ")): a guarantee rests on that"
    case .leaderless(let topic, let partitions):
      "\(topic): \(LagWords.numbers(partitions)) can neither be read nor written, for no broker leads: is a broker away?"
    case .replicasBehind(let topic, let partitions):
      "\(topic): not all copies of \(LagWords.numbers(partitions)) are in step: is a broker away?"
    case .unwritable(let fault): "nothing can be written to \(fault): are brokers away?"
    case .lag(let problem): LagWords.problem(problem)
    case .unreadable(let part, let reason):
      "\(part.rawValue) cannot be read: \(TerminalText.visible(reason))"
    case .redisUnsuitable(let reason): "Redis: \(TerminalText.visible(reason))"
    case .evicted(let keys):
      "Redis has evicted \(TerminalText.count(keys, "key")) since it was started, and devices and notifications with them: set maxmemory-policy to noeviction, empty it, and restore it with 'carillon rebuild'; CONFIG RESETSTAT removes this line"
    case .memoryShort(let used, let maximum) where used >= maximum:
      "Redis has used \(TerminalText.size(used)) of \(TerminalText.size(maximum)) and is full: raise maxmemory; until then nothing is delivered, and workers cannot report themselves"
    case .memoryShort(let used, let maximum):
      "Redis has used \(TerminalText.size(used)) of \(TerminalText.size(maximum)): raise maxmemory before it is full, for then nothing is delivered any more"
    case .notSaved: "Redis could not write what it keeps on disk: look at its log, and at the room on its disk"
    case .otherCluster(let found, let own):
      "this Redis belongs to another cluster: it has \(own.differences(from: found).map(TerminalText.visible).joined(separator: "; ")): give --redis, --kafka, --topic-prefix, --buckets and --cluster of one cluster"
    case .unready(let worker): "\(name(worker)) is not ready: \(conditions(worker))"
    case .clockDiffers(let name, let ahead):
      "the clock of \(TerminalText.visible(name)) is \(TerminalText.duration(abs(ahead))) \(ahead < 0 ? "behind" : "ahead of") that of Redis: notifications expire early or late there; set it right, or Redis' clock where all workers differ alike"
    case .silent(let worker):
      "\(name(worker)) has said nothing for \(TerminalText.duration(worker.silentMilliseconds)): it was killed, hangs, or cannot write to Redis; it is forgotten after \(TerminalText.duration(Workers.forgottenMilliseconds))"
    case .noWorker("transform"): "no transform worker runs: requests wait in Kafka; start 'carillon transform'"
    case .noWorker("fan-out"): "no fan-out worker runs: no device can be connected; start 'carillon fan-out'"
    case .noWorker(let role): "no \(role) worker runs"
    }
  }

  static func note(_ note: StatusNote) -> String {
    switch note {
    case .stopped(let application, let stop):
      "\(TerminalText.visible(application)) is stopped since \(Timestamp.text(stop.from)) by \(TerminalText.visible(stop.by))\(stop.reason.map { ": \(TerminalText.visible($0))" } ?? ""); 'carillon applications start \(TerminalText.visible(application))' starts it again"
    case .moreStopped(let count): "\(count) more applications are stopped: 'carillon applications list' lists them"
    case .limited(let application, let limit):
      "\(TerminalText.visible(application)) is limited to \(ApplicationPrinter.text(limit)): 'carillon applications limit' changes that"
    case .moreLimited(let count): "\(count) more applications have a rate limit: 'carillon applications list' lists them"
    case .applicationsUnknown(let reason):
      "which applications are stopped or limited is not known: \(TerminalText.visible(reason))"
    case .producersTime(let topic):
      "\(topic) has the times of its producers (CreateTime), whose clocks decide which request is the newest: the embedded broker cannot give its own"
    case .versions(let versions):
      "workers of different versions run: \(versions.map(TerminalText.visible).joined(separator: ", "))"
    case .settingDiffers(let difference):
      "\(TerminalText.visible(difference.text)): a rolling change ends with the same value everywhere"
    case .draining(let name): "\(TerminalText.visible(name)) is draining, and about to end"
    case .unreadable(let name): "what \(TerminalText.visible(name)) says of itself cannot be read: is it of a later version?"
    case .unreported("transform", let members):
      "the group has \(TerminalText.count(members, "member")), and no transform worker reports itself: are they of an earlier version?"
    case .unreported(_, let lanes):
      "\(TerminalText.count(lanes, "fan-out lane")) live, and no fan-out worker reports itself: are they of an earlier version?"
    case .manyWorkers: "no more than \(Workers.maximum) workers are kept in Redis, so some may not be shown"
    case .workersUnknown: "the workers report themselves to Redis, so nothing is known of them but the group's members"
    case .redis(let text): "Redis: \(TerminalText.visible(text))"
    case .populationUnknown(let reason): "devices and mailboxes were not counted: \(TerminalText.visible(reason))"
    case .settingsUnknown(let reason): "the settings of the topics were not checked: \(TerminalText.visible(reason))"
    case .lagUnknown(let reason): "how far the group is behind is not known: \(TerminalText.visible(reason))"
    case .lag(let gap): LagWords.gap(gap)
    }
  }

  private static func name(_ worker: Workers.Listing) -> String { TerminalText.visible(worker.name) }

  /// Why a worker is not ready and for how long: the first reasons.
  private static func conditions(_ worker: Workers.Listing) -> String {
    let shown = worker.report?.unready.prefix(3).map { condition in
      let place = condition.lane.map { "\($0), " } ?? ""
      return TerminalText.visible("\(place)\(condition.name): \(condition.reason)")
        + " (for \(TerminalText.duration(worker.age(of: condition))))"
    }
    let more = (worker.report?.unreadyCount ?? 0) - (shown?.count ?? 0)
    return (shown ?? []).joined(separator: "; ") + (more > 0 ? "; and \(more) more" : "")
  }
}

extension TerminalText {
  /// Bytes with one decimal: `512 B`, `1.2 MiB`.
  static func size(_ bytes: Int64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"]
    guard bytes >= 1024 else { return "\(bytes) B" }
    var (size, unit) = (Double(bytes) / 1024, 0)
    while size >= 1024, unit < units.count - 1 { (size, unit) = (size / 1024, unit + 1) }
    let tenths = Int64(size * 10)
    return "\(tenths / 10).\(tenths % 10) \(units[unit])"
  }
}
