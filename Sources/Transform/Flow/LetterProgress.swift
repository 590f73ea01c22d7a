/// What Kafka does not have yet of a dead letter and the event that belongs to it.
struct MissingLetter {
  var letter: Bool
  var event: Bool
  /// How often Kafka has found the letter too large.
  var refusals: Int
}

/// Whether Kafka has a record's letter and its event. Neither is written twice for one fault.
struct LetterProgress {
  private enum State { case missing, underWay, done }

  private var letter = State.missing
  private var event = State.missing
  private var refusals = 0
  /// Whether they are those of a record that cannot be processed, and not those of a rule that it breaks.
  private var isPoison = false

  /// What Kafka does not have of them is written now.
  ///
  /// - Parameter isPoison: whether the record cannot be processed. What Kafka has for a broken rule does not count for that.
  mutating func begin(isPoison: Bool) -> MissingLetter {
    if isPoison, !self.isPoison {
      self = LetterProgress()
      self.isPoison = true
    }
    defer {
      if letter == .missing { letter = .underWay }
      if event == .missing { event = .underWay }
    }
    return MissingLetter(letter: letter == .missing, event: event == .missing, refusals: refusals)
  }

  /// Kafka has the letter.
  mutating func written() { letter = .done }

  /// Kafka has found the letter too large: the next one is smaller.
  mutating func refused() { refusals += 1 }

  /// Kafka has the event, or has refused it as too large. Then the letter goes without one.
  mutating func eventDone() { event = .done }

  /// The record is started again: every answer for its former letter has arrived.
  mutating func restart() {
    if letter == .underWay { letter = .missing }
    if event == .underWay { event = .missing }
  }
}
