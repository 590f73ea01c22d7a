/// A record at a stage. It tells a late answer from one for the slot's next record, or for another stage.
struct ParkedRecord: Hashable {
  /// The record's slot.
  let slot: Slot
  /// How many records were begun before it.
  let order: UInt64
  /// The stage's number.
  let stage: Int
}

/// The records that are parked: at a stage that answers later, or behind a record of their target that is. Each target's wait in the order in
/// which they were begun.
struct TargetQueues {
  /// A parked record.
  private struct Place {
    let target: UInt64
    /// How many records were begun before it.
    let order: UInt64
    /// The stage that it is at; nil if it has passed the stages, and waits for an earlier record of its target.
    var stage: Int?
  }

  private var places: [Slot: Place] = [:]
  /// A flood for one target takes them from the front one by one, which moves no others in a slice.
  private var queues: [UInt64: ArraySlice<Slot>] = [:]

  /// How many records are parked.
  var count: Int { places.count }

  /// Parks a record at a stage, or behind the earlier records of its target.
  ///
  /// - Parameter stage: the stage that answers later; nil if the record has passed the stages.
  /// - Returns: false if nothing holds it.
  mutating func park(_ slot: Slot, target: UInt64, order: UInt64, at stage: Int?) -> Bool {
    // One that is started again need not wait for a later record.
    if stage == nil, queues[target]?.first.map({ isBegun($0, after: order) }) ?? true { return false }
    places[slot] = Place(target: target, order: order, stage: stage)
    // It comes last, unless it is started again.
    let later = queues[target]?.reversed().prefix { isBegun($0, after: order) }.count ?? 0
    let end = queues[target]?.endIndex ?? 0
    queues[target, default: []].insert(slot, at: end - later)
    return true
  }

  private func isBegun(_ slot: Slot, after order: UInt64) -> Bool { places[slot].map { $0.order > order } ?? false }

  /// Whether a record still is where a stage has left it.
  func isParked(_ record: ParkedRecord) -> Bool {
    places[record.slot].map { $0.order == record.order && $0.stage == record.stage } ?? false
  }

  /// A stage has answered, and a later stage has not yet.
  mutating func move(_ slot: Slot, to stage: Int) { places[slot]?.stage = stage }

  /// The last stage of a record has answered.
  ///
  /// - Returns: the records that are judged now, in their order.
  mutating func passed(_ slot: Slot) -> [Slot] {
    guard let target = places[slot]?.target else { return [] }
    places[slot]?.stage = nil
    return release(target)
  }

  /// Takes a record out that is to fail. The next records of its target do not wait for its retry.
  ///
  /// - Returns: the records that are judged now, in their order.
  mutating func remove(_ slot: Slot) -> [Slot] {
    guard let target = places.removeValue(forKey: slot)?.target else { return [] }
    queues[target]?.removeAll { $0 == slot }
    return release(target)
  }

  /// Takes records out.
  ///
  /// - Returns: these, the stages' handles of those that were at one, and the records that are judged now, in their order.
  mutating func removeAll(where isOver: (Slot) -> Bool) -> (removed: [Slot], handles: [ParkedRecord], released: [Slot]) {
    var (removed, handles, released): ([Slot], [ParkedRecord], [Slot]) = ([], [], [])
    for (target, queue) in queues {
      let over = queue.filter(isOver)
      guard !over.isEmpty else { continue }
      removed += over
      for slot in over {
        if let place = places.removeValue(forKey: slot), let stage = place.stage {
          handles.append(ParkedRecord(slot: slot, order: place.order, stage: stage))
        }
      }
      queues[target] = ArraySlice(queue.filter { !isOver($0) })
      released += release(target)
    }
    return (removed, handles, released)
  }

  /// Takes a target's first records as far as they have passed the stages.
  private mutating func release(_ target: UInt64) -> [Slot] {
    let released = Array(queues[target, default: []].prefix { places[$0]?.stage == nil })
    queues[target]?.removeFirst(released.count)
    if queues[target]?.isEmpty == true { queues[target] = nil }
    for slot in released { places[slot] = nil }
    return released
  }
}
