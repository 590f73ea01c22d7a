import Notifications

/// Whether a letter is pending, redriven or discarded.
package enum LetterStanding: String, Sendable, CaseIterable {
  /// It was neither redriven nor discarded.
  case pending
  /// It was written to the requests again.
  case redriven
  /// It was discarded, and not redriven.
  case discarded
}

/// The states of letters, and how often each request came for the same reason. A value.
///
/// Everything is read twice. The first reading notes states, and letters that came again, in any order. The second one asks about each
/// letter once. Memory does not grow with the letters: it has two bits for each handled letter and its neighbours, and the keys of
/// ``maximumRecurrences`` letters that came again.
struct LetterLedger {
  /// The most letters that came again whose number is known; some 16 bytes each.
  static let maximumRecurrences = 1 << 20

  private static let lettersOfBlock: Int64 = 4_096

  private struct BlockName: Hashable {
    let partition: Int32
    let number: Int64
  }

  /// Two bits for each offset: redriven, discarded.
  private var blocks: [BlockName: [UInt64]] = [:]
  private var recurrences: [UInt64: UInt32] = [:]
  /// Whether more letters came again than the limit.
  private(set) var hasTooManyRecurrences = false

  /// Whether any letter came again.
  var hasRecurrences: Bool { !recurrences.isEmpty }

  // MARK: The first reading

  /// Notes a letter's state.
  ///
  /// - Parameter place: the state's place, behind its letter in the same partition. Other states are ignored.
  mutating func note(_ state: LetterState, at place: RecordPlace) {
    guard state.letter.partition == place.partition, state.letter.offset < place.offset else { return }
    let (block, word, shift) = Self.bits(of: state.letter)
    let words = Int(Self.lettersOfBlock / 32)
    blocks[block, default: Array(repeating: 0, count: words)][word] |= (state.kind == .redriven ? 1 : 2) << shift
  }

  /// Notes a letter with an origin.
  mutating func note(recurrence: UInt64) {
    guard recurrences.count < Self.maximumRecurrences || recurrences[recurrence] != nil else { return hasTooManyRecurrences = true }
    recurrences[recurrence] = 0
  }

  // MARK: The second reading

  /// The standing of a letter. If it was redriven, other states do not count.
  func standing(of letter: RecordPlace) -> LetterStanding {
    let (block, word, shift) = Self.bits(of: letter)
    guard let bits = blocks[block]?[word] else { return .pending }
    switch bits >> shift & 3 {
    case 0: return .pending
    case 2: return .discarded
    default: return .redriven
    }
  }

  /// Counts a letter: how often its request has come for its reason, including this one; 1 if unknown.
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
