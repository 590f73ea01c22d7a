package import Notifications

/// Selects dead letters. An empty or missing member selects all.
package struct LetterFilter: Sendable {
  /// Letters by their place in the dead letters. With ``ids`` these are alternatives.
  package var places: Set<RecordPlace> = []
  /// Letters by the apns-id of their request.
  package var ids: Set<NotificationID> = []
  /// Their reasons.
  package var reasons: Set<Name> = []
  /// Their applications.
  package var applications: Set<Name> = []
  /// When they were written.
  package var time = TimeRange()
  /// Their standing.
  package var standing: LetterStanding?

  /// Makes a filter that selects all letters.
  package init() {}

  /// Whether it selects all letters, whatever their standing.
  package var isEverything: Bool {
    places.isEmpty && ids.isEmpty && reasons.isEmpty && applications.isEmpty && time.from == nil && time.to == nil
  }

  /// Whether it selects a letter, whatever its standing.
  func matches(_ letter: LetterFacts) -> Bool {
    (places.isEmpty && ids.isEmpty || places.contains(letter.place) || ids.contains(letter.id))
      && (reasons.isEmpty || reasons.contains(Name(letter.letter.reason)))
      && (applications.isEmpty || letter.application.map(applications.contains) == true) && time.contains(letter.time)
  }

  /// Whether it selects a letter with this standing.
  func matches(_ letter: LetterFacts, _ standing: LetterStanding) -> Bool {
    (self.standing == nil || self.standing == standing) && matches(letter)
  }
}
