import Notifications
import Redis

/// The steps of a check: each command that workers send or have in scripts, then each script.
enum CheckSteps {
  /// Each command alone, so that a refused command is named even if a script calls it only in a rare branch.
  static func commands(_ keys: CheckKeys) -> [CheckStep] {
    let (hash, set, text) = (RedisArgument.text(keys["hash"]), RedisArgument.text(keys["set"]), RedisArgument.text(keys["text"]))
    return [
      CheckStep("TIME"), CheckStep("HSETNX", hash, "f", "1"), CheckStep("HSET", hash, "g", "1"), CheckStep("HGET", hash, "f"),
      CheckStep("HMGET", hash, "f", "g"), CheckStep("HGETALL", hash), CheckStep("HKEYS", hash), CheckStep("HLEN", hash),
      CheckStep("HEXISTS", hash, "f"), CheckStep("HSTRLEN", hash, "f"), CheckStep("HDEL", hash, "f"), CheckStep("EXISTS", hash),
      CheckStep("TYPE", hash), CheckStep("PEXPIRE", hash, "60000"), CheckStep("PERSIST", hash), CheckStep("ZADD", set, "0", "a"),
      CheckStep("ZCARD", set), CheckStep("ZSCORE", set, "a"), CheckStep("ZRANGE", set, "0", "-1"), CheckStep("ZREVRANGE", set, "0", "-1"),
      CheckStep("ZRANGEBYLEX", set, "-", "+"), CheckStep("ZRANGEBYSCORE", set, "-inf", "+inf"),
      CheckStep("ZREMRANGEBYSCORE", set, "1", "2"), CheckStep("ZSCAN", set, "0"), CheckStep("ZREM", set, "a"),
      CheckStep("SET", text, "x", "PX", "60000"),
      CheckStep("GET", text), CheckStep("PTTL", text),
    ]
  }

  /// Each script, in an order in which each finds the data that it needs. This is the only list of all scripts.
  static func scripts(_ keys: CheckKeys) -> [CheckStep] {
    let presence = RedisArgument.bytes(Presence(partition: 0, generation: 1).bytes)
    let (owner, stamp) = (Owner(user: 0, since: 1, application: 1), RegistrationStamp(digest: 1, partition: 0, offset: 1))
    let digest = RedisArgument.bytes(withUnsafeBytes(of: stamp.digest.bigEndian, Array.init))
    let revision = Revision(timestamp: 1, partition: 0, offset: 1)
    let device = [keys["d"], keys["m"], keys["k"]]
    let schedules = [keys["s"], keys["n"], keys["e"]]
    let name = RedisArgument.text("check")
    let keep = RedisArgument.integer(60_000)
    // In seconds: any time after 1970 by more than a window of recent ids lasts.
    let now = RedisArgument.integer(1_000_000)
    let request = request(revision)
    func isOne(_ reply: RedisReplyView) -> Bool { reply.integer == 1 }
    func beginsWithOne(_ reply: RedisReplyView) -> Bool { reply[0]?.integer == 1 }
    return [
      CheckStep("HSETNX", .text(keys["k"]), "i", name),
      CheckStep(
        "registrations", Registrations.script, keys: device, [.bytes(owner.bytes), .bytes(stamp.bytes), keep, "", "", ""],
        isRight: beginsWithOne),
      CheckStep("enter", Presences.enterScript, keys: device, [presence, digest], isRight: beginsWithOne),
      CheckStep(
        "judge", Judge.script, keys: device, [now, keep, 10, 10, 4, 4, .bytes(Array(repeating: 1, count: 32))],
        request: request,
        // New, and the presence follows.
        isRight: { $0[0]?.bytes?.first == 9 }),
      CheckStep(
        "results", Results.script, keys: [keys["x"], keys["k"], keys["d"]], [], request: request, isRight: { $0.integer != nil }),
      CheckStep("mailbox page", Mailboxes.pageScript, keys: [keys["m"], keys["d"]], [10, 0], isRight: { $0.count == 5 }),
      CheckStep("mailbox depth", Population.mailboxScript, keys: [keys["m"]], [], isRight: beginsWithOne),
      CheckStep("refresh", Presences.refreshScript, keys: device, [presence], isRight: beginsWithOne),
      CheckStep(
        "evict", Mailboxes.evictScript, keys: [keys["d"], keys["m"]], [0, 0, .bytes(revision.withBytes { Array($0) })],
        isRight: { $0.kind == .array && $0.count == 0 }),
      CheckStep(
        "cancel", Mailboxes.cancelScript, keys: [keys["d"], keys["m"]], [.bytes(revision.withBytes { Array($0) })],
        isRight: { $0.kind == .array && $0.count == 0 }),
      CheckStep(
        "gap", Presences.gapScript, keys: device, [presence, .bytes(Array(repeating: 0, count: 2 * Revision.byteCount))],
        isRight: { $0.integer == 0 }),
      CheckStep(
        "delete", Mailboxes.deleteScript, keys: [keys["m"]],
        [.bytes(revision.withBytes { Array($0) }), .bytes(Array(repeating: 0, count: 16))], isRight: { $0.integer == 0 }),
      CheckStep("leave", Presences.leaveScript, keys: device, [presence, keep], isRight: beginsWithOne),
      CheckStep("ZADD", .text(keys["u"]), 0, name),
      CheckStep("recipients", Recipients.pageScript, keys: [keys["u"], keys["k"]], ["-", 10], isRight: { $0.count == 1 }),
      CheckStep(
        "markers", Markers.script, keys: [keys["k"]], [name, "q0", "", .bytes(Marker.beginning.bytes)],
        isRight: { $0.kind == .array && $0.count == 0 }),
      CheckStep(
        "schedule write", Schedules.writeScript,
        keys: schedules + [keys["t"], keys["t"], keys["o"], keys["h"], keys["k"], keys["u"]],
        [name, "", "state", 1, name, 1, 1, keep, 10, 10, 10, name, "", "", 1, "", ""], isRight: beginsWithOne),
      CheckStep(
        "schedule read", Schedules.readScript, keys: [schedules[0], keys["k"]], [name], isRight: { $0[0]?.bytes?.count == 5 }),
      CheckStep(
        "schedule settle", Schedules.settleScript, keys: schedules + [keys["h"], keys["k"]],
        [name, "state", name], isRight: { $0[0]?.bytes?.count == 5 }),
      CheckStep(
        "schedule pending", Schedules.pendingScript, keys: schedules.prefix(2) + [keys["k"]], [], isRight: { $0.count == 3 }),
      CheckStep(
        "schedule due", Schedules.dueScript, keys: [keys["t"], keys["o"], keys["y"], keys["k"]],
        [1, 10, "0", "2026a"], isRight: { $0[0]?.count == 2 }),
      CheckStep("schedule holders", ScheduleHolders.script, keys: [keys["t"]], [10], isRight: { $0[2]?.integer == 1 }),
      CheckStep("schedule remove", Schedules.removeScript, keys: [keys["t"]], ["another", name], isRight: isOne),
      CheckStep(
        "schedule follow-up", Schedules.followUpScript, keys: [schedules[0], schedules[2], keys["o"], keys["k"]],
        [name, name, 10, 1], isRight: { $0[1]?.bytes?.count == 5 }),
      CheckStep(
        "schedule cancel", Schedules.cancelScript, keys: [schedules[0], schedules[1], keys["k"]],
        [.bytes(revision.withBytes { Array($0) } + Array(repeating: 0, count: 16)), keep], isRight: { $0[0]?.count == 2 }),
      CheckStep("tries begin", CrashLoops.beginScript, keys: [keys["tries"]], [name, "q0", 0], isRight: { $0[0]?[0]?.integer != nil }),
      CheckStep("tries note", CrashLoops.noteScript, keys: [keys["tries"]], [name, "q0", 0, 1, "q1"], isRight: isOne),
      CheckStep("tries clear", CrashLoops.clearScript, keys: [keys["tries"]], ["q0"], isRight: isOne),
      CheckStep("lane claim", Lanes.claimScript, keys: [keys["lanes"]], [name, keep, 1], isRight: { $0[0]?.integer == 0 }),
      CheckStep("lane beat", Lanes.beatScript, keys: [keys["lanes"]], ["0:check"], isRight: { $0.integer != nil }),
      CheckStep("lane list", Lanes.listScript, keys: [keys["lanes"]], [10, 100], isRight: { $0.count == 2 }),
      CheckStep(
        "worker beat", Workers.beatScript, keys: [keys["workers"], keys["reports"]], [name, "{}", keep, 10, keep],
        isRight: { $0.integer != nil }),
      CheckStep("worker list", Workers.listScript, keys: [keys["workers"], keys["reports"]], [10, 100, 100], isRight: { $0.count == 3 }),
      CheckStep(
        "worker leave", Workers.leaveScript, keys: [keys["workers"], keys["reports"]], [name, 1, 100], isRight: isOne),
      CheckStep("member beat", GroupHeartbeats.beatScript, keys: [keys["members"]], [keep, name], isRight: { $0[2]?.count == 2 }),
      CheckStep("member claim", GroupHeartbeats.claimScript, keys: [keys["members"]], [name, 1], isRight: { $0.kind == .array }),
      CheckStep("claim", ClusterIdentity.claimScript, keys: [keys["cluster"]], ["kafka", name], isRight: { $0.count == 1 }),
      CheckStep("rebuild end", Rebuild.endScript, keys: [keys["k"], keys["b"]], [name, "i", name], isRight: { $0.integer == 0 }),
    ]
  }

  /// A request for the device of the check.
  private static func request(_ revision: Revision) -> RequestEntry {
    RequestEntry(
      span: ArenaSpan(), kind: .notify, collapseID: ArenaSpan(), application: 1, user: 0, time: 1, withdraws: nil, id: 1, source: 1,
      end: .max, revision: revision)
  }
}
