public import Notifications

/// Changes of a request's headers on its way back, to mend what was wrong with it.
public struct RequestEdits: Sendable, Equatable {
  /// Why changes cannot be made.
  public enum Mistake: Error, Sendable, Equatable {
    /// The header is one that the dead letters add, and that is taken off anyway.
    case ofLetter(Name)
    /// The origin is the cluster's to write.
    case origin
    /// The header is to be set and removed.
    case setAndRemoved(Name)
    /// With this header it would be another request.
    case otherRequest(Name)
  }

  /// Headers that get a value, in place of what they have or behind the others.
  public let assigned: [(name: Name, value: String)]
  /// Headers that are removed.
  public let removed: [Name]
  /// Whether it becomes a request of its own, without an origin.
  public let isNew: Bool

  /// No changes.
  public init() { (assigned, removed, isNew) = ([], [], false) }

  /// Changes, checked as far as no record is needed for it.
  ///
  /// - Parameter isNew: the only way to change a target, or to set an apns-id.
  public init(set: [(name: Name, value: String)], removed: [Name], isNew: Bool) throws(Mistake) {
    for name in set.map(\.name) + removed where name.utf8.starts(with: LetterStateHeader.prefix.utf8) { throw .ofLetter(name) }
    for (name, _) in set {
      let header = RequestHeader.named(name)
      if header == .origin { throw .origin }
      if removed.contains(where: { Self.areSame($0, name) }) { throw .setAndRemoved(name) }
      if !isNew, header == .target || header == .id { throw .otherRequest(name) }
    }
    (assigned, self.removed, self.isNew) = (set, removed, isNew)
  }

  /// A request of its own, with another apns-id.
  init(asNew id: NotificationID) {
    (assigned, removed, isNew) = ([(Name(RequestHeader.id.name.description), id.description)], [], true)
  }

  /// Whether nothing changes but where it lies.
  public var isEmpty: Bool { assigned.isEmpty && removed.isEmpty && !isNew }

  /// Makes the changes; of a header that stands several times one is left. What becomes a request of its own loses its origin.
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

  /// Whether two names are one header's. The case of those of the contract does not matter.
  private static func areSame(_ one: Name, _ other: Name) -> Bool {
    one == other || RequestHeader.named(one).map { $0 == RequestHeader.named(other) } ?? false
  }

  /// Whether both make the same changes.
  public static func == (one: RequestEdits, other: RequestEdits) -> Bool {
    one.assigned.elementsEqual(other.assigned) { $0 == $1 } && one.removed == other.removed && one.isNew == other.isNew
  }
}
