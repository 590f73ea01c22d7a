package import Notifications

/// Changes to a request's headers before it is redriven.
package struct RequestEdits: Sendable, Equatable {
  /// Why changes are refused.
  package enum Mistake: Error, Sendable, Equatable {
    /// The header is of dead letters only, and is removed in any case.
    case ofLetter(Name)
    /// Only the cluster writes the origin.
    case origin
    /// The header would be set and removed.
    case setAndRemoved(Name)
    /// The header would make it another request.
    case otherRequest(Name)
  }

  /// Headers that get a value, in place of an old one or after the others.
  package let assigned: [(name: Name, value: String)]
  /// Headers that are removed.
  package let removed: [Name]
  /// Whether it becomes a new request, without an origin.
  package let isNew: Bool

  /// Makes no changes.
  package init() { (assigned, removed, isNew) = ([], [], false) }

  /// Makes changes, checked without a record.
  ///
  /// - Parameter isNew: allows a new target or apns-id.
  package init(set: [(name: Name, value: String)], removed: [Name], isNew: Bool) throws(Mistake) {
    for name in set.map(\.name) + removed where name.utf8.starts(with: LetterStateHeader.prefix.utf8) { throw .ofLetter(name) }
    for (name, _) in set {
      let header = RequestHeader.named(name)
      if header == .origin { throw .origin }
      if removed.contains(where: { Self.areSame($0, name) }) { throw .setAndRemoved(name) }
      if !isNew, header == .target || header == .id { throw .otherRequest(name) }
    }
    (assigned, self.removed, self.isNew) = (set, removed, isNew)
  }

  /// Makes a new request with another apns-id.
  init(asNew id: NotificationID) {
    (assigned, removed, isNew) = ([(Name(RequestHeader.id.name.description), id.description)], [], true)
  }

  /// Changes a record. A repeated header is left once. A new request loses its origin.
  func apply(to record: inout StoredRecord) {
    if isNew { record.headers.removeAll { RequestHeader.named($0.key) == .origin } }
    for name in removed { record.headers.removeAll { Self.areSame($0.key, name) } }
    for (name, value) in assigned {
      let place = record.headers.firstIndex { Self.areSame($0.key, name) }
      record.headers.removeAll { Self.areSame($0.key, name) }
      let header = StoredRecord.Header(name.text, value)
      if let place { record.headers.insert(header, at: min(place, record.headers.count)) } else { record.headers.append(header) }
    }
  }

  /// Whether two names mean the same header. Those of the contract ignore case.
  private static func areSame(_ one: Name, _ other: Name) -> Bool {
    one == other || RequestHeader.named(one).map { $0 == RequestHeader.named(other) } ?? false
  }

  /// Whether both make the same changes.
  package static func == (one: RequestEdits, other: RequestEdits) -> Bool {
    one.assigned.elementsEqual(other.assigned) { $0 == $1 } && one.removed == other.removed && one.isNew == other.isNew
  }
}
