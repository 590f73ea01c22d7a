import Kafka
import Notifications
import Worker

extension RecordView {
  /// The last header of the contract with this name, in any case; nil if there is none or it has no value.
  func header(_ wanted: RequestHeader) -> UnsafeRawBufferPointer? {
    var found: UnsafeRawBufferPointer?
    forEachHeader { name, value in
      if RequestHeader.named(name) == wanted { found = value }
    }
    return found
  }

  /// The headers as texts, in their order, without those that have no value.
  package var texts: [(name: String, value: String)] {
    var texts: [(name: String, value: String)] = []
    forEachHeader { name, value in
      if let value { texts.append((String(cString: name), String(decoding: value, as: UTF8.self))) }
    }
    return texts
  }
}

extension RecordView {
  /// The application that a record of the topics `applications` and `categories` is about.
  ///
  /// - Returns: nil for the mark of a silent end, and for a key that is not an application, which is refused.
  func application(_ onRefused: (SourceCoordinates, String) -> Void) -> Name? {
    if EndTombstone.matches(self) { return nil }
    if let key, ApplicationStops.isApplication(key) { return Name(key) }
    onRefused(SourceCoordinates(self), ApplicationStops.nameRule)
    return nil
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes as text.
  var characters: String { String(decoding: self, as: UTF8.self) }
}

extension Origin {
  /// A copy of the first place.
  var place: SourceCoordinates { SourceCoordinates(topic: topic.text, position: position) }
}
