/// What Kafka does not have yet of a dead letter and the event that belongs to it.
struct MissingLetter {
  var letter: Bool
  var event: Bool
  /// How often Kafka has found the letter too large.
  var refusals: Int
}

/// Whether Kafka has a record's letter and its event. Neither is written twice for one fault.
struct LetterProgress {
  enum State { case missing, underWay, done }

  var letter = State.missing
  var event = State.missing
  var refusals: Int32 = 0
  private var isPoison = false

  /// What Kafka does not have of them is written now.
  ///
  /// - Parameter isPoison: whether the record cannot be processed. Its former letter may have been for a rule that it breaks.
  mutating func begin(isPoison: Bool) -> MissingLetter {
    if isPoison, !self.isPoison {
      self = LetterProgress()
      self.isPoison = true
    }
    defer {
      if letter == .missing { letter = .underWay }
      if event == .missing { event = .underWay }
    }
    return MissingLetter(letter: letter == .missing, event: event == .missing, refusals: Int(refusals))
  }

  /// The record is started again: every answer for its former letter has arrived.
  mutating func restart() {
    if letter == .underWay { letter = .missing }
    if event == .underWay { event = .missing }
  }
}
