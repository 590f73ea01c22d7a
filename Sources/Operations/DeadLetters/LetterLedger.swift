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

/// The states of letters. A value.
///
/// Everything is read twice. The first reading notes states, in any order. The second one asks about each letter. Memory has two bits for
/// each handled letter and its neighbours.
struct LetterLedger {
  private static let lettersOfBlock: Int64 = 4_096

  private struct BlockName: Hashable {
    let partition: Int32
    let number: Int64
  }

  /// Two bits for each offset: redriven, discarded.
  private var blocks: [BlockName: [UInt64]] = [:]

  /// Notes a letter's state.
  ///
  /// - Parameter place: the state's place, behind its letter in the same partition. Other states are ignored.
  mutating func note(_ state: LetterState, at place: RecordPlace) {
    guard state.letter.partition == place.partition, state.letter.offset < place.offset else { return }
    let (block, word, shift) = Self.bits(of: state.letter)
    let words = Int(Self.lettersOfBlock / 32)
    blocks[block, default: Array(repeating: 0, count: words)][word] |= (state.kind == .redriven ? 1 : 2) << shift
  }

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

  private static func bits(of letter: RecordPlace) -> (block: BlockName, word: Int, shift: UInt64) {
    let (number, index) = letter.offset.quotientAndRemainder(dividingBy: lettersOfBlock)
    return (BlockName(partition: letter.partition, number: number), Int(index) / 32, UInt64(index % 32) * 2)
  }
}
