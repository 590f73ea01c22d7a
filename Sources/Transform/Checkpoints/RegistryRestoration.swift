import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Waits until Redis has all registrations that Kafka has now, whoever applies them; until then no person's devices are looked up.
/// Loop-confined.
final class RegistryRestoration {
  private let loop: EventLoop
  private let state: LaneState
  private let markers: Markers
  private let member: GroupMember
  private let admin: Admin
  private let topics: Topics
  private let logger: Logger
  /// Waits that are under way: one whose epoch is over may end after the next has begun.
  private var waits = 0
  weak var owner: (any LanePhaseOwner)?

  init(
    on loop: EventLoop, _ state: LaneState, _ markers: Markers, _ member: GroupMember, _ admin: Admin, _ topics: Topics, logger: Logger
  ) {
    (self.loop, self.state, self.markers, self.member, self.admin, self.topics) = (loop, state, markers, member, admin, topics)
    self.logger = logger
  }

  var isUnderWay: Bool { waits > 0 }

  /// Waits, unless Redis gives a new sign that it may have lost something.
  func run() async {
    let epoch = state.phase.epoch
    waits += 1
    defer { waits -= 1 }
    while state.phase.restoresRegistry(since: epoch) {
      do {
        let ends = try await admin.registryEnds(topics)
        while state.phase.restoresRegistry(since: epoch) {
          if await markers.hasRegistry(upTo: ends) == true {
            owner?.perform(state.phase.registryRestored(in: epoch))
            return
          }
          owner?.perform(state.phase.registryIsBehind(in: epoch))
          // The markers that are waited for are raised with what is committed.
          member.committer?.commit()
          await loop.sleep(milliseconds: 50)
        }
      } catch {
        logger.warning("the registry's end is not known", ["error": "\(error)"])
        await loop.sleep(milliseconds: 500)
      }
    }
  }
}
