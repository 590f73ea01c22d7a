import Notifications

/// How it stands with a letter.
public enum LetterStanding: String, Sendable, CaseIterable {
  /// Nothing was done with it.
  case pending
  /// It was written to the requests again.
  case redriven
  /// Nothing is to be done with it, somebody said, and nobody redrove it.
  case discarded
}

/// What was done with letters, and how often one came again for the same reason. A value.
///
/// Everything is read twice. The first time states, and the letters that say they came again, may be noted in any order; the second time
/// each letter is asked about once. Memory does not grow with the letters: it is two bits for each of those with which something was
/// done and for those near them, and the keys of ``maximumRecurrences`` letters that came again.
struct LetterLedger {
  /// The letters that came again whose number is known, at most: some 16 bytes each. Of further ones it is not.
  static let maximumRecurrences = 1 << 20

  private static let lettersOfBlock: Int64 = 4_096

  private struct BlockName: Hashable {
    let partition: Int32
    let number: Int64
  }

  /// Two bits for each offset: redriven, discarded.
  private var blocks: [BlockName: [UInt64]] = [:]
  private var recurrences: [UInt64: UInt32] = [:]
  /// Whether there were more letters that came again than are kept.
  private(set) var hasTooManyRecurrences = false

  /// Whether any letter came again.
  var hasRecurrences: Bool { !recurrences.isEmpty }

  // MARK: The first reading

  /// Notes what a record says was done with a letter.
  ///
  /// - Parameter place: where that record lies: behind its letter, in the same partition. What lies elsewhere says nothing.
  mutating func note(_ state: LetterState, at place: RecordPlace) {
    guard state.letter.partition == place.partition, state.letter.offset < place.offset else { return }
    let (block, word, shift) = Self.bits(of: state.letter)
    let words = Int(Self.lettersOfBlock / 32)
    blocks[block, default: Array(repeating: 0, count: words)][word] |= (state.kind == .redriven ? 1 : 2) << shift
  }

  /// Notes a letter that has an origin.
  mutating func note(recurrence: UInt64) {
    guard recurrences.count < Self.maximumRecurrences || recurrences[recurrence] != nil else { return hasTooManyRecurrences = true }
    recurrences[recurrence] = 0
  }

  // MARK: The second reading

  /// How it stands with a letter: one that was redriven is that, whatever else was said of it.
  func standing(of letter: RecordPlace) -> LetterStanding {
    let (block, word, shift) = Self.bits(of: letter)
    guard let bits = blocks[block]?[word] else { return .pending }
    switch bits >> shift & 3 {
    case 0: return .pending
    case 2: return .discarded
    default: return .redriven
    }
  }

  /// Counts a letter: how often its request has come for its reason by now, this time included; 1 also when that is not known.
  mutating func count(recurrence: UInt64) -> Int {
    guard let before = recurrences[recurrence] else { return 1 }
    recurrences[recurrence] = before + 1
    return Int(before) + 1
  }

  private static func bits(of letter: RecordPlace) -> (block: BlockName, word: Int, shift: UInt64) {
    let (number, index) = letter.offset.quotientAndRemainder(dividingBy: lettersOfBlock)
    return (BlockName(partition: letter.partition, number: number), Int(index) / 32, UInt64(index % 32) * 2)
  }
}
