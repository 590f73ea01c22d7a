/// Finds the members of a group that are silent while the worker's own heartbeats arrive in time. A value.
///
/// A member counts as silent after two heartbeats of the worker without one of its own, if the worker has seen it beat before. After an
/// interruption of its own it knows nothing of the others: they may need some time, too, until they beat again. So where Redis stands still
/// nobody is silent. Who died in that interruption is silent after twenty heartbeats.
struct SilentMembers {
  /// How often each worker beats, in milliseconds.
  static let intervalMilliseconds: Int64 = 500
  /// No member is silent that has beaten within this time, in milliseconds by Redis' clock.
  static let silentMilliseconds: Int64 = 2 * intervalMilliseconds
  /// The worker's own heartbeats may be this far apart. Later ones show nothing of others, since what delayed them may delay others, too.
  static let lateMilliseconds = intervalMilliseconds * 3 / 2
  /// After a longer pause the worker starts again.
  static let interruptedMilliseconds = 3 * intervalMilliseconds

  /// The worker's heartbeats without one of a member after which that is silent.
  static let (misses, missesOfUnseen) = (2, 20)

  private struct Member {
    var beat: Int64
    /// Whether the worker has seen two heartbeats of it without an interruption between.
    var wasSeen: Bool
    /// The worker's heartbeats since then.
    var misses = 0
  }

  private var members: [String: Member] = [:]
  /// When the last heartbeat was answered, by the worker's clock and by Redis'.
  private var last: (here: Int64, there: Int64)?

  /// A heartbeat failed, or the connection was lost.
  mutating func interrupted() { (members, last) = ([:], nil) }

  /// A heartbeat was answered.
  ///
  /// - Parameters:
  ///   - beats: the last heartbeat of each other member, in milliseconds by Redis' clock.
  ///   - here: the worker's steady clock, in milliseconds.
  ///   - there: Redis' clock, in milliseconds.
  /// - Returns: the silent members with their last heartbeats; each again after as many further heartbeats of the worker, if it is listed still.
  mutating func answered(_ beats: [String: Int64], at here: Int64, by there: Int64) -> [String: Int64] {
    let pause = last.map { max(here - $0.here, there - $0.there) } ?? .max
    // Redis' clock has gone back: it may be another server.
    if pause > Self.interruptedMilliseconds || last.map({ there < $0.there }) != false { interrupted() }
    last = (here, there)
    var silent: [String: Int64] = [:]
    members = Dictionary(
      uniqueKeysWithValues: beats.map { name, beat in
        guard var member = members[name] else { return (name, Member(beat: beat, wasSeen: false)) }
        guard member.beat == beat else { return (name, Member(beat: beat, wasSeen: true)) }
        member.misses = pause > Self.lateMilliseconds ? 0 : member.misses + 1
        if member.misses >= (member.wasSeen ? Self.misses : Self.missesOfUnseen), there - beat >= Self.silentMilliseconds {
          silent[name] = beat
          member.misses = 0
        }
        return (name, member)
      })
    return silent
  }
}
