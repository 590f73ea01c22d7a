/// A value: when schedules are due, and which places to ask Redis about.
///
/// The lane asks Redis about a place when it does not know the next due time there, or when that time has come. Otherwise it asks nothing.
struct DueTable {
  /// One partition of the requests in one bucket.
  struct Place: Hashable {
    var partition: Int32
    var bucket: Int
  }

  /// One question to Redis. The table ignores an answer to an earlier question about the place.
  struct Question: Hashable {
    var place: Place
    var number: UInt64
  }

  /// What the lane does now.
  enum Step: Equatable {
    /// Ask Redis what is due in these places. A place counts as asked until its question is answered or fails.
    case ask([Question])
    /// Wait until a time in milliseconds since 1970, or until the table changes.
    case wait(until: Int64)
    /// Wait until the table changes: by an answer, or by a schedule that is written.
    case idle
  }

  private enum State: Equatable {
    /// The lane does not know what is due in the place.
    case unknown
    /// The lane has asked Redis. The answer may lack a schedule that was written after the question.
    case asked(UInt64, writtenMeanwhile: Int64?)
    /// The next due time in the place; nil if nothing is scheduled there.
    case known(Int64?)
  }

  /// The maximum number of unanswered questions.
  static let maximumAsked = 64

  private let buckets: Int
  private var states: [Place: State] = [:]
  private var unknown: [Place] = []
  private var asked = 0
  private var questions: UInt64 = 0
  /// All due times that the table has learned, earliest first. An element counts only while it equals the due time of its place.
  private var queue = DueQueue()

  init(buckets: Int) { self.buckets = buckets }

  /// Sets the partitions that the lane owns. The due times in new partitions are unknown.
  mutating func keep(_ partitions: Set<Int32>) {
    let had = Set(states.keys.map(\.partition))
    for partition in had.subtracting(partitions) { remove(partition) }
    for partition in partitions.subtracting(had) { add(partition) }
  }

  /// Adds a partition. Its due times are unknown.
  mutating func add(_ partition: Int32) {
    for bucket in 0..<buckets where states[Place(partition: partition, bucket: bucket)] == nil {
      forget(Place(partition: partition, bucket: bucket))
    }
  }

  /// Removes a partition that the lane lost.
  mutating func remove(_ partition: Int32) {
    for bucket in 0..<buckets {
      if case .asked = states.removeValue(forKey: Place(partition: partition, bucket: bucket)) { asked -= 1 }
    }
    unknown.removeAll { $0.partition == partition }
  }

  /// Marks all places as unknown, because Redis may have lost schedules.
  mutating func forgetAll() {
    (unknown, asked, queue) = ([], 0, DueQueue())
    for place in states.keys { forget(place) }
  }

  private mutating func forget(_ place: Place) {
    states[place] = .unknown
    unknown.append(place)
  }

  /// Notes the earliest due time of a schedule that was written.
  mutating func written(_ due: Int64, at place: Place) {
    switch states[place] {
    case .known(let known):
      if known.map({ due < $0 }) ?? true { know(due, at: place) }
    case .asked(let number, let former): states[place] = .asked(number, writtenMeanwhile: min(former ?? due, due))
    case .unknown, nil: break
    }
  }

  /// Takes the answer to a question.
  ///
  /// - Parameter next: the first time at which the place needs another look; nil if there is none.
  mutating func answered(_ next: Int64?, to question: Question) {
    guard case .asked(question.number, let written) = states[question.place] else { return }
    asked -= 1
    know([next, written].compactMap { $0 }.min(), at: question.place)
  }

  /// Notes that a question failed. The place is unknown again.
  mutating func failed(_ question: Question) {
    guard case .asked(question.number, _) = states[question.place] else { return }
    asked -= 1
    forget(question.place)
  }

  private mutating func know(_ due: Int64?, at place: Place) {
    states[place] = .known(due)
    guard let due else { return }
    // Outdated elements stay in the queue until their time comes. Many of them make the table build the queue again.
    if queue.count > 2 * states.count + 64 {
      queue = DueQueue()
      for (place, state) in states { if case .known(let due?) = state { queue.insert(due, place) } }
    } else {
      queue.insert(due, place)
    }
  }

  /// Returns what the lane does at a time.
  mutating func step(at now: Int64) -> Step {
    var asking: [Question] = []
    while let (due, place) = queue.first, due <= now, asked < Self.maximumAsked {
      queue.removeFirst()
      if states[place] == .known(due) { asking.append(ask(place)) }
    }
    while asked < Self.maximumAsked, let place = unknown.popLast() { asking.append(ask(place)) }
    if !asking.isEmpty { return .ask(asking) }
    if asked >= Self.maximumAsked { return .idle }
    while let (due, place) = queue.first {
      if states[place] == .known(due) { return .wait(until: due) }
      queue.removeFirst()
    }
    return .idle
  }

  private mutating func ask(_ place: Place) -> Question {
    questions += 1
    asked += 1
    states[place] = .asked(questions, writtenMeanwhile: nil)
    return Question(place: place, number: questions)
  }
}

/// A binary heap of due times with their places. The earliest is the first.
private struct DueQueue {
  private var elements: [(due: Int64, place: DueTable.Place)] = []

  var first: (due: Int64, place: DueTable.Place)? { elements.first }
  var count: Int { elements.count }

  mutating func insert(_ due: Int64, _ place: DueTable.Place) {
    elements.append((due, place))
    var child = elements.count - 1
    while child > 0, elements[child].due < elements[(child - 1) / 2].due {
      elements.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func removeFirst() {
    guard let last = elements.popLast(), !elements.isEmpty else { return }
    elements[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < elements.count && elements[child].due < elements[least].due {
        least = child
      }
      if least == parent { return }
      elements.swapAt(parent, least)
      parent = least
    }
  }
}
