import Store
import TestSupport
import Testing

@testable import Transform

/// The groups in which records are begun as long as a partition is suspected.
@Suite struct RecordGroupsTests {
  private typealias Groups = RecordGroups<[Int64]>
  private static let partition = MarkedPartition.requests(0)

  // MARK: One group

  @Test func aGroupIsTakenOnceAndOnlyWhenItIsNoted() {
    var groups = Groups()
    groups.suspect(Self.partition, CrashLoopDetector.Suspicion())
    #expect(groups.take()?.records == nil)
    let tag = groups.begin([7, 9], count: 2, offsets: 7..<10, of: Self.partition)
    #expect(groups.take()?.records == nil, "Redis has not answered")
    #expect(groups.noted(tag) == true)
    #expect(groups.noted(tag) == false, "an answer comes once")
    #expect(!groups.isFree, "its records are not under way")
    #expect(groups.take()?.records == [7, 9])
    #expect(groups.isFree)
    #expect(groups.take()?.records == nil)
  }

  @Test func theNoteOfAGroupThatWasGivenUpIsNotTheNextOnes() {
    var groups = Groups()
    groups.suspect(Self.partition, CrashLoopDetector.Suspicion())
    let former = groups.begin([7], count: 1, offsets: 7..<8, of: Self.partition)
    groups.giveUp()
    #expect(groups.noted(former) == false)
    let next = groups.begin([8], count: 1, offsets: 8..<9, of: Self.partition)
    #expect(groups.noted(former) == false)
    #expect(groups.take()?.records == nil)
    #expect(groups.noted(next) == true)
    #expect(groups.take()?.records == [8])
  }

  /// Its records have tickets: nobody else would work on them.
  @Test(arguments: [false, true]) func aGroupIsTakenWhateverEndsTheSuspicionMeanwhile(_ isNoted: Bool) {
    var groups = Groups()
    groups.suspect(Self.partition, CrashLoopDetector.Suspicion(remedies: [7: .withoutExtensions]))
    let tag = groups.begin([7], count: 1, offsets: 7..<8, of: Self.partition)
    if isNoted { #expect(groups.noted(tag) == true) }
    #expect(groups.forget([Self.partition]) == [Self.partition])
    #expect(!groups.isNeeded && !groups.isFree)
    if !isNoted { #expect(groups.noted(tag) == true) }
    #expect(groups.take()?.remedy == .withoutExtensions)
  }

  @Test func ofWhatIsLostTheProcessMayHaveLeftANote() {
    var groups = Groups()
    let other = MarkedPartition.devices(0)
    groups.suspect(Self.partition, CrashLoopDetector.Suspicion())
    let tag = groups.begin([3], count: 1, offsets: 3..<4, of: other)
    #expect(groups.noted(tag) == true)
    #expect(groups.take()?.records == [3])
    #expect(groups.leave([other], isLost: true) == [other], "it was not suspected, and noted all the same")
    #expect(groups.leave([other], isLost: true).isEmpty)
    #expect(groups.leave([Self.partition], isLost: true) == [Self.partition])
    #expect(!groups.isNeeded)
    #expect(groups.startedAgain(Self.partition) == true)
    #expect(groups.isSuspected(Self.partition))
    #expect(groups.startedAgain(Self.partition) == false, "once")
  }

  /// It is read once more from where it was committed: what was begun of it may not have been worked on.
  @Test func aPartitionThatIsBegunOnceMoreIsSuspectedFromItsBeginning() {
    var groups = Groups()
    groups.suspect(Self.partition, CrashLoopDetector.Suspicion(remedies: [7: .deadLetter]))
    let tag = groups.begin([7], count: 1, offsets: 7..<8, of: Self.partition)
    #expect(groups.noted(tag) == true)
    groups.reachedEnd(of: Self.partition, at: 8)
    #expect(groups.leave([Self.partition], isLost: true) == [Self.partition])
    groups.giveUp()
    #expect(groups.startedAgain(Self.partition) == true)
    #expect(groups.takeThrough { _ in false }.isEmpty, "its end is another reading's")
    #expect(groups.end(from: 7, of: Self.partition) == 8, "what is known of it is known still")
  }

  /// Its next owner goes on with the search, and would begin anew if this lane declared the partition harmless.
  @Test func `a partition that is being revoked stays suspected, though none of its records waits here any more`() {
    var groups = Groups()
    groups.suspect(Self.partition, CrashLoopDetector.Suspicion(remedies: [9: .withoutExtensions]))
    let tag = groups.begin([7], count: 1, offsets: 7..<8, of: Self.partition)
    groups.reachedEnd(of: Self.partition, at: 12)
    #expect(groups.noted(tag) && groups.take() != nil)
    groups.revoked([Self.partition])
    #expect(groups.takeThrough { _ in false }.isEmpty)
    #expect(groups.leave([Self.partition], isLost: false) == [Self.partition])
  }

  // MARK: All of a partition

  /// Every record is worked on, once and in order, a known one alone and with its remedy; then nothing is suspected any more.
  @Test(arguments: 0..<(isComplete ? 50 : 10) as Range<UInt64>) func theSearchComesToItsEndAndLeavesNothingOut(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var offsets: [Int64] = []
    for _ in 0..<Int.random(in: 1...300, using: &random) { offsets.append((offsets.last ?? -1) + Int64.random(in: 1...40, using: &random)) }
    var suspicion = CrashLoopDetector.Suspicion()
    for _ in 0..<Int.random(in: 0...3, using: &random) { suspicion.remedies[offsets.randomElement(using: &random) ?? 0] = .deadLetter }
    if Bool.random(using: &random) {
      let first = offsets.randomElement(using: &random) ?? 0
      suspicion.group = CrashLoopDetector.Group(first: first, width: .random(in: 1...64, using: &random))
    }
    var groups = Groups()
    groups.suspect(Self.partition, suspicion)
    groups.reachedEnd(of: Self.partition, at: (offsets.last ?? 0) + 1)
    var taken: [Int64] = []
    while let first = offsets.dropFirst(taken.count).first {
      #expect(groups.takeThrough { _ in true }.isEmpty, "some of it is not begun")
      let end = groups.end(from: first, of: Self.partition)
      let records = Array(offsets.dropFirst(taken.count).prefix { $0 < end })
      let tag = groups.begin(records, count: records.count, offsets: first..<(records.last ?? first) + 1, of: Self.partition)
      #expect(groups.noted(tag) == true)
      let group = groups.take()
      #expect(group?.remedy == suspicion.remedies[first])
      if records.contains(where: { suspicion.remedies[$0] != nil }) { #expect(records.count == 1) }
      taken += group?.records ?? []
    }
    #expect(taken == offsets)
    #expect(groups.takeThrough { _ in false } == [Self.partition])
    #expect(!groups.isNeeded && groups.takeUnsuspected().isEmpty)
  }

  // MARK: Any history

  /// A partition as the model knows it.
  private struct Known {
    enum State { case absent, owned, lost }

    let name: MarkedPartition
    var state = State.absent
    /// Where its next record lies.
    var next: Int64 = 0
    /// Nil: it is not suspected.
    var suspicion: CrashLoopDetector.Suspicion?
    /// What was begun since it was suspected.
    var begun: [Int64] = []
    var end: Int64?

    init(_ name: MarkedPartition) { self.name = name }

    func isThrough(isWaiting: Bool) -> Bool {
      guard state == .owned, let suspicion else { return false }
      let behind = begun.max().map { $0 + 1 } ?? 0
      let isAllBegun =
        begun.count >= CrashLoopDetector.bisectedRecords && behind >= suspicion.group.map { $0.first + $0.width } ?? 0
        && suspicion.remedies.keys.allSatisfy { $0 < behind }
      let isRead = end.map { end in suspicion.remedies.keys.allSatisfy { $0 < end } } ?? false
      return isAllBegun || isRead && !isWaiting
    }
  }

  private enum Event: CaseIterable {
    case come, lose, comeAgain, leave, begin, answer, take, giveUp, readAll, lookForThrough, harmless, asUsual
  }

  private struct History {
    var random: SeededRandom
    var groups = Groups()
    var partitions = [MarkedPartition.requests(0), .requests(1), .devices(0)].map(Known.init)
    /// The group that waits.
    var group: (tag: Groups.Tag, records: [Int64], remedy: CrashLoopDetector.Remedy?, isNoted: Bool)?
    /// Answers of Redis that have not come, also to groups that were given up.
    var unanswered: [Groups.Tag] = []
    var unsuspected: Set<MarkedPartition> = []

    mutating func pick(_ state: Known.State) -> Int? {
      partitions.indices.filter { partitions[$0].state == state }.randomElement(using: &random)
    }

    mutating func come(_ place: Int) {
      (partitions[place].state, partitions[place].suspicion, partitions[place].begun, partitions[place].end) = (.owned, nil, [], nil)
      guard Bool.random(using: &random) else { return }
      var suspicion = CrashLoopDetector.Suspicion()
      let near = partitions[place].next..<partitions[place].next + 200
      if Bool.random(using: &random) {
        let width: Int64 = [1, 8, 64].randomElement(using: &random) ?? 1
        suspicion.group = CrashLoopDetector.Group(first: .random(in: near, using: &random), width: width)
      }
      for _ in 0..<Int.random(in: 0...2, using: &random) { suspicion.remedies[.random(in: near, using: &random)] = .withoutExtensions }
      partitions[place].suspicion = suspicion
      groups.suspect(partitions[place].name, suspicion)
    }

    mutating func leave(_ place: Int, isLost: Bool) {
      let name = partitions[place].name
      var expected: [MarkedPartition] = partitions[place].suspicion == nil ? [] : [name]
      if isLost, unsuspected.contains(name) { expected.append(name) }
      #expect(groups.leave([name], isLost: isLost) == expected)
      unsuspected.remove(name)
      partitions[place].state = isLost ? .lost : .absent
      if !isLost { partitions[place].suspicion = nil }
    }

    mutating func comeAgain(_ place: Int) {
      #expect(groups.startedAgain(partitions[place].name) == (partitions[place].suspicion != nil))
      (partitions[place].state, partitions[place].begun, partitions[place].end) = (.owned, [], nil)
      partitions[place].next = max(0, partitions[place].next - .random(in: 0...100, using: &random))
    }

    mutating func begin(_ place: Int) {
      let (name, first) = (partitions[place].name, partitions[place].next)
      let remedies = partitions[place].suspicion?.remedies ?? [:]
      let end = groups.end(from: first, of: name)
      #expect(end > first && end <= first + CrashLoopDetector.groupWidth)
      var records = [first]
      // Offsets are missing; or a batch ends.
      for offset in first + 1..<end where Int.random(in: 0..<8, using: &random) > 0 { records.append(offset) }
      records = Array(records.prefix(Int.random(in: 1...100, using: &random)))
      let behind = (records.last ?? first) + 1
      #expect(records.count == 1 || records.allSatisfy { remedies[$0] == nil }, "a known one is a group by itself")
      let tag = groups.begin(records, count: records.count, offsets: first..<behind, of: name)
      group = (tag, records, remedies[first], false)
      unanswered.append(tag)
      partitions[place].next = behind
      if partitions[place].suspicion == nil { unsuspected.insert(name) } else { partitions[place].begun += records }
    }

    mutating func step() {
      switch Event.allCases.randomElement(using: &random) ?? .begin {
      case .come:
        let isAbsent = Bool.random(using: &random)
        if let place = pick(isAbsent ? .absent : .lost) { come(place) }
      case .lose: if let place = pick(.owned) { leave(place, isLost: true) }
      case .comeAgain: if let place = pick(.lost) { comeAgain(place) }
      case .leave: if Int.random(in: 0..<4, using: &random) == 0, let place = pick(.owned) { leave(place, isLost: false) }
      case .begin: if group == nil, let place = pick(.owned) { begin(place) }
      case .answer:
        guard !unanswered.isEmpty else { return }
        let tag = unanswered.remove(at: .random(in: unanswered.indices, using: &random))
        #expect(groups.noted(tag) == (group?.tag == tag))
        if group?.tag == tag { group?.isNoted = true }
      case .take:
        let taken = groups.take()
        let expected = group.flatMap { $0.isNoted ? $0 : nil }
        #expect(taken?.records == expected?.records && taken?.remedy == expected?.remedy)
        if expected != nil { group = nil }
      case .giveUp:
        guard Int.random(in: 0..<8, using: &random) == 0 else { return }
        groups.giveUp()
        group = nil
      case .readAll:
        guard let place = pick(.owned) else { return }
        groups.reachedEnd(of: partitions[place].name, at: partitions[place].next)
        partitions[place].end = partitions[place].next
      case .lookForThrough:
        guard group == nil else { return }
        let waiting = Set(partitions.map(\.name).filter { _ in Bool.random(using: &random) })
        let through = partitions.indices.filter { partitions[$0].isThrough(isWaiting: waiting.contains(partitions[$0].name)) }
        #expect(Set(groups.takeThrough(waiting.contains)) == Set(through.map { partitions[$0].name }))
        for place in through { partitions[place].suspicion = nil }
      case .harmless:
        guard Int.random(in: 0..<8, using: &random) == 0, let place = pick(.owned) else { return }
        let name = partitions[place].name
        #expect(groups.forget([name]) == (partitions[place].suspicion == nil ? [] : [name]))
        partitions[place].suspicion = nil
      case .asUsual:
        guard group == nil, !groups.isNeeded else { return }
        #expect(Set(groups.takeUnsuspected()) == unsuspected)
        unsuspected = []
      }
    }
  }

  /// Beside a naive model, which keeps all that was begun: no group is forgotten, none is taken without its note or by another one's.
  @Test(arguments: 0..<(isComplete ? 100 : 20) as Range<UInt64>) func noGroupIsForgottenOrTakenWithoutItsNote(_ seed: UInt64) {
    var history = History(random: SeededRandom(seed: seed))
    for _ in 0..<600 {
      history.step()
      #expect(history.groups.isFree == (history.group == nil))
      let suspected = history.partitions.filter { $0.state == .owned && $0.suspicion != nil }
      #expect(history.groups.isNeeded == !suspected.isEmpty)
      for known in history.partitions {
        #expect(history.groups.isSuspected(known.name) == (known.state == .owned && known.suspicion != nil))
      }
    }
  }
}
