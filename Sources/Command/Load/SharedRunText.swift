import EventLoop
import Notifications
import Operations
import Worker

/// What becomes of the processes of a run, in words.
enum SharedRunText {
  /// A notice in words; nil for one that is told in another way.
  ///
  /// - Parameter wait: how long this process waits for the others.
  static func text(_ notice: SharedRun.Notice, _ shares: LoadShares, waiting wait: Duration) -> String? {
    switch notice {
    case .absent: "no process has begun it with --processes yet; waiting for that, \(wait.inWords) at most"
    case .waiting: waiting(shares)
    case .unwritten(let error): "the numbers of this process did not reach the first one: \(error)"
    case .news(.joined(let share)): share == shares.own ? nil : "\(process(share, shares)) has joined"
    case .news(.ready(let share)): share == shares.own ? nil : "\(process(share, shares)) is ready"
    case .news(.left(let share, let process, let reason)):
      share == shares.own
        ? nil
        : "process \(share + 1) of \(shares.shares.count) (\(TerminalText.visible(process.name))) has left: \(TerminalText.visible(reason))"
    case .news(.silent(let share)): "\(process(share, shares)) is silent"
    case .news(.heard(let share)): "\(process(share, shares)) is heard again"
    case .news(.finished(let share)): share == shares.own ? nil : "\(process(share, shares)) is done"
    case .news(.unreadable): "the topic load has a record of this run that cannot be read; it is ignored"
    case .news(.violation): nil
    }
  }

  private static func process(_ share: Int, _ shares: LoadShares) -> String {
    let name = shares.shares[share].process.map { " (\(TerminalText.visible($0.name)))" } ?? ""
    return "process \(share + 1) of \(shares.shares.count)\(name)"
  }

  private static func waiting(_ shares: LoadShares) -> String {
    if case .running = shares.phase {
      return "waiting for the numbers of " + shares.unfinished.map { process($0, shares) }.joined(separator: ", ")
    }
    let ready = shares.shares.count { $0.state == .ready }
    let slow = shares.shares.indices.filter { shares.shares[$0].state == .taken }
    let free = shares.shares.count { $0.state == .free }
    var text = "\(ready) of \(TerminalText.count(shares.shares.count, "process")) ready"
    if free > 0 { text += "; \(free) did not join yet" }
    if !slow.isEmpty { text += "; connecting: " + slow.map { process($0, shares) }.joined(separator: ", ") }
    return text
  }

  /// Why a process cannot take part, for the person who typed the command.
  static func failure(_ problem: LoadRefusal.SharedProblem, _ run: String) -> Failure {
    func time(_ milliseconds: some BinaryInteger) -> String { ReadableText.duration(milliseconds: Int64(milliseconds)) }
    switch problem {
    case .isUnderWay:
      return Failure(
        .wrongUsage,
        "--run: a run \(run) of several processes has begun and is not over: join it with --join, give another name, or end it with 'carillon load clean \(run)'"
      )
    case .isAbsent(let waited):
      return Failure(.dependencyMissing, "--join: no process has begun a run \(run) with --processes in \(time(waited)) (--wait)")
    case .isOver: return Failure(.wrongUsage, "--join: run \(run) is over, and takes no more processes")
    case .hasStarted:
      return Failure(.wrongUsage, "--join: run \(run) has started without this process; all processes must join before the start")
    case .isFull(let count):
      return Failure(.wrongUsage, "--join: run \(run) is for \(TerminalText.count(count, "process")) (--processes), and all have joined")
    case .isForeign(let version, let own):
      return Failure(
        .wrongUsage,
        "--join: the plan of run \(run) has version \(version), and this program knows version \(own): use the same carillon on all machines"
      )
    case .notReady(let slow, let missing, let waited):
      var reasons: [String] = missing > 0 ? ["\(TerminalText.count(missing, "process")) did not join"] : []
      if missing == 0, slow.isEmpty { reasons.append("one of them has not been heard since all were connected") }
      if !slow.isEmpty { reasons.append("not connected: " + slow.map(TerminalText.visible).joined(separator: ", ")) }
      return Failure(
        .dependencyMissing, "--processes: not all were ready within \(time(waited)) (--wait): " + reasons.joined(separator: "; "))
    case .wasRemoved:
      return Failure(.answerIsNo, "the share of this process was taken back, since it was silent or not ready at the start")
    case .firstIsSilent: return Failure(.answerIsNo, "the first process of run \(run) is silent, so nobody takes the numbers of this one")
    case .wasEnded(let reason): return Failure(.answerIsNo, "run \(run) was ended: \(TerminalText.visible(reason))")
    case .wasStopped: return Failure(.answerIsNo, "run \(run) was ended before its start")
    case .clocksDiffer(let milliseconds):
      return Failure(
        .wrongUsage,
        "the start of run \(run) is \(milliseconds < 0 ? "\(time(-milliseconds)) ago" : "\(time(milliseconds)) away"): the clock of this machine differs from that of the first process, so set both"
      )
    }
  }
}

extension Duration {
  /// The duration for a person, such as `10 min`.
  var inWords: String { ReadableText.duration(milliseconds: Int64(wholeMilliseconds)) }
}
