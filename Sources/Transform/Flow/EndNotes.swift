import EventLoop
import Kafka

/// Notes what the ends of records make possible, until the lane drains the notes at the end of the loop's turn.
///
/// A record may end while another one starts, or while a batch is read. So an end starts nothing: it is noted, and the lane continues when
/// its turn ends. A note that comes later than that is drained in the next turn, which follows at once.
final class EndNotes {
  private let timer: Timer
  private var turnEnd: TurnEnd?
  private var tickets: [RecordTicket] = []
  private var isNoted = false
  /// Drains all notes; it has to `take` these.
  var drain: (() -> Void)?

  init(on loop: EventLoop) {
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in drainNoted() }
    turnEnd = loop.onTurnEnd { [weak self] in self?.drainNoted() }
  }

  /// A record is finished: its ticket goes back to the tracker.
  func finished(_ ticket: RecordTicket) {
    tickets.append(ticket)
    note()
  }

  /// Has the notes drained when the turn ends.
  func note() {
    guard !isNoted else { return }
    isNoted = true
    timer.start(after: 0)
  }

  /// Takes what was noted: the tickets of the finished records.
  func take() -> [RecordTicket] {
    defer { tickets = [] }
    return tickets
  }

  private func drainNoted() {
    guard isNoted, let drain else { return }
    // Reset first: a note in the middle of a drain may be about what the drain has already looked at.
    while isNoted {
      isNoted = false
      drain()
    }
    timer.stop()
  }

  /// Drains nothing any more.
  func close() {
    turnEnd?.close()
    timer.close()
    drain = nil
  }
}
