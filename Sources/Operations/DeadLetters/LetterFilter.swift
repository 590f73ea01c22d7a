public import Notifications

/// Which dead letters are meant. What is empty or absent leaves none out.
public struct LetterFilter: Sendable {
  /// Letters by where they lie in the dead letters; with ``ids`` these are alternatives.
  public var places: Set<RecordPlace> = []
  /// Letters by the apns-id of their request.
  public var ids: Set<NotificationID> = []
  /// Their reasons.
  public var reasons: Set<Name> = []
  /// Their applications.
  public var applications: Set<Name> = []
  /// When they were written.
  public var time = TimeRange()
  /// How it stands with them.
  public var standing: LetterStanding?

  /// All letters.
  public init() {}

  /// Whether all letters are meant, however it stands with them.
  public var isEverything: Bool {
    places.isEmpty && ids.isEmpty && reasons.isEmpty && applications.isEmpty && time.from == nil && time.to == nil
  }

  /// Whether a letter is meant, however it stands with it.
  func matches(_ letter: LetterFacts) -> Bool {
    (places.isEmpty && ids.isEmpty || places.contains(letter.place) || ids.contains(letter.id))
      && (reasons.isEmpty || reasons.contains(Name(letter.letter.reason)))
      && (applications.isEmpty || letter.application.map(applications.contains) == true) && time.contains(letter.time)
  }

  /// Whether a letter is meant that stands so.
  func matches(_ letter: LetterFacts, _ standing: LetterStanding) -> Bool {
    (self.standing == nil || self.standing == standing) && matches(letter)
  }
}
