import EventLoop
import Kafka
import TestSupport
import Testing

@testable import Transform

/// Notes of ended records on a loop: each is drained once, and never inside the call that makes it.
@Suite struct EndNotesTests {
  /// What happens, in order. Confined to the loop.
  private final class Lane {
    let notes: EndNotes
    var happened: [String] = []
    var drained = 0
    /// Called in the first drains, one each.
    var inDrains: [() -> Void] = []

    init(_ loop: EventLoop) {
      notes = EndNotes(on: loop)
      notes.drain = { [unowned self] in
        happened.append("drain")
        drained += notes.take().count
        if !inDrains.isEmpty { inDrains.removeFirst()() }
      }
    }
  }

  /// A ticket of a tracker, which alone gives any.
  private static func ticket() throws -> RecordTicket {
    var tracker = PartitionTracker(limit: 1)
    tracker.assign(0, generation: 1)
    guard case .begun(let ticket) = tracker.begin(0, generation: 1, offset: 0) else { throw CancellationError() }
    return ticket
  }

  private static func with(_ body: @escaping @Sendable (EventLoop) async throws -> Void) async throws {
    let loop = EventLoop(name: "notes")
    try await Task(executorPreference: loop) { try await body(loop) }.value
    await loop.close()
  }

  @Test func `all ends of a turn are drained together, after the call that makes the last of them`() async throws {
    try await Self.with { loop in
      let lane = Lane(loop)
      for _ in 0..<3 { lane.notes.finished(try Self.ticket()) }
      lane.happened.append("end of the call")
      await eventually("they are drained") { lane.drained > 0 }
      #expect(lane.happened == ["end of the call", "drain"] && lane.drained == 3)
      await pause()
      #expect(lane.happened.count == 2, "a turn without notes drains nothing")
      lane.notes.close()
    }
  }

  @Test func `an end in the middle of a drain is drained, and not inside of it`() async throws {
    try await Self.with { loop in
      let lane = Lane(loop)
      let ticket = try Self.ticket()
      for _ in 0..<2 {
        lane.inDrains.append {
          lane.notes.finished(ticket)
          lane.happened.append("start")
        }
      }
      lane.notes.note()
      await eventually("the last is drained") { lane.happened.count >= 5 }
      await pause()
      #expect(lane.happened == ["drain", "start", "drain", "start", "drain"] && lane.drained == 2)
      lane.notes.close()
    }
  }

  @Test func `a note that comes in a drain before it takes the tickets is drained once more`() async throws {
    try await Self.with { loop in
      let (lane, ticket) = (Lane(loop), try Self.ticket())
      var drains = 0
      lane.notes.drain = {
        drains += 1
        // As when a page that is asked for fails at once.
        if drains == 1 { lane.notes.note() }
        lane.drained += lane.notes.take().count
      }
      lane.notes.finished(ticket)
      await eventually("it is drained twice") { drains >= 2 }
      await pause()
      #expect(drains == 2 && lane.drained == 1)
      lane.notes.close()
    }
  }

  @Test func `an end that comes after the turn's drain wakes a loop that has nothing else to do`() async throws {
    try await Self.with { loop in
      let lane = Lane(loop)
      let ticket = try Self.ticket()
      // It runs after the drain of its turn.
      var isLate = false
      let late = loop.onTurnEnd {
        if isLate { lane.notes.finished(ticket) }
        isLate = false
      }
      let deadline = Timer(on: loop)
      deadline.handler = { lane.inDrains.removeFirst()() }
      deadline.start(after: 60_000)
      await withCheckedContinuation { continuation in
        lane.inDrains = [continuation.resume]
        isLate = true
      }
      deadline.close()
      #expect(lane.drained == 1)
      late.close()
      lane.notes.close()
    }
  }
}
