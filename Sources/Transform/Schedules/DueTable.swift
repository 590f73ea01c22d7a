/// Where and when the next schedules of a lane's partitions are due: a value.
///
/// A lane asks Redis about a bucket only when it knows nothing of it, or when a schedule there is due. While nothing is due it asks nothing.
struct DueTable {
  /// The due times of one partition of the requests in one bucket.
  struct Place: Hashable {
    var partition: Int32
    var bucket: Int
  }

  /// One question to Redis. An answer to a former question about the place counts for nothing.
  struct Question: Hashable {
    var place: Place
    var number: UInt64
  }

  /// What the lane does now.
  enum Step: Equatable {
    /// Asks Redis what is due there. Each place stays asked until the question is answered or fails.
    case ask([Question])
    /// Waits until a time in milliseconds since 1970, or until something else happens.
    case wait(until: Int64)
    /// Waits for an answer, or for a schedule.
    case idle
  }

  private enum State: Equatable {
    /// What is due there is not known.
    case unknown
    /// Redis was asked. A schedule that was written meanwhile may not be in the answer.
    case asked(UInt64, writtenMeanwhile: Int64?)
    /// When the next one is due; nil: there is none.
    case known(Int64?)
  }

  /// How many places are asked about at once.
  static let maximumAsked = 64

  private let buckets: Int
  private var states: [Place: State] = [:]
  private var unknown: [Place] = []
  private var asked = 0
  private var questions: UInt64 = 0
  /// Each due time that was told, the earliest first; one that is no longer that of its place counts for nothing.
  private var queue = DueQueue()

  init(buckets: Int) { self.buckets = buckets }

  /// The lane has these partitions now. It knows nothing of the schedules in those that it did not have.
  mutating func keep(_ partitions: Set<Int32>) {
    let had = Set(states.keys.map(\.partition))
    for partition in had.subtracting(partitions) { remove(partition) }
    for partition in partitions.subtracting(had) { add(partition) }
  }

  /// The lane got a partition. It knows nothing of the schedules there.
  mutating func add(_ partition: Int32) {
    for bucket in 0..<buckets where states[Place(partition: partition, bucket: bucket)] == nil {
      forget(Place(partition: partition, bucket: bucket))
    }
  }

  /// The lane lost a partition.
  mutating func remove(_ partition: Int32) {
    for bucket in 0..<buckets {
      if case .asked = states.removeValue(forKey: Place(partition: partition, bucket: bucket)) { asked -= 1 }
    }
    unknown.removeAll { $0.partition == partition }
  }

  /// Redis may have lost something: nothing is known any more.
  mutating func forgetAll() {
    (unknown, asked, queue) = ([], 0, DueQueue())
    for place in states.keys { forget(place) }
  }

  private mutating func forget(_ place: Place) {
    states[place] = .unknown
    unknown.append(place)
  }

  /// A schedule was written whose earliest due time is this.
  mutating func written(_ due: Int64, at place: Place) {
    switch states[place] {
    case .known(let known):
      if known.map({ due < $0 }) ?? true { know(due, at: place) }
    case .asked(let number, let former): states[place] = .asked(number, writtenMeanwhile: min(former ?? due, due))
    case .unknown, nil: break
    }
  }

  /// Redis has answered a question.
  ///
  /// - Parameter next: when the next one is due that was not in the answer, or is still to be fired; nil: there is none.
  mutating func answered(_ next: Int64?, to question: Question) {
    guard case .asked(question.number, let written) = states[question.place] else { return }
    asked -= 1
    know([next, written].compactMap { $0 }.min(), at: question.place)
  }

  /// Redis has not answered a question.
  mutating func failed(_ question: Question) {
    guard case .asked(question.number, _) = states[question.place] else { return }
    asked -= 1
    forget(question.place)
  }

  private mutating func know(_ due: Int64?, at place: Place) {
    states[place] = .known(due)
    guard let due else { return }
    // Due times that have been overtaken lie there until their time comes.
    if queue.count > 2 * states.count + 64 {
      queue = DueQueue()
      for (place, state) in states { if case .known(let due?) = state { queue.insert(due, place) } }
    } else {
      queue.insert(due, place)
    }
  }

  /// What the lane does at a time.
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

/// Due times with their places, of which the earliest is at hand: a binary heap.
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
