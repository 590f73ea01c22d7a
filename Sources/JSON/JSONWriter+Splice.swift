/// Changes one member of a text and keeps all other bytes.
///
/// The complete text is checked before anything is written, so an error leaves the writer unchanged. A path consists of member names, from
/// the outermost object inwards. Of several members with the same name the last one counts, as for most readers. A removal removes all of
/// them, so that no earlier one appears.
extension JSONWriter {
  /// Writes `text` with the member at `path` set to `value`.
  ///
  /// The caller vouches that `value` is valid JSON. A missing member becomes the last of its object, and missing objects on the path are
  /// created. An empty path means the complete text. Throws `notAnObject` if the path leads through another kind of value.
  public mutating func raw(
    _ text: UnsafeRawBufferPointer, setting path: [String], to value: UnsafeRawBufferPointer
  ) throws(JSONError) {
    var search = MemberSearch(text, path: path, removing: false)
    switch try search.place() {
    case .value(let span):
      raw(text.slice(0, span.start))
      piece(value)
      piece(text.slice(span.end, text.count))
    case .absent(let end, let isEmpty, let level):
      raw(text.slice(0, end))
      if isEmpty { needsComma = false }
      for index in level..<path.count {
        if index > level { openObject() }
        key(text: path[index])
      }
      raw(value)
      for _ in (level + 1)..<max(path.count, level + 1) { closeObject() }
      piece(text.slice(end, text.count))
    case .blocked(let offset):
      throw JSONError(reason: .notAnObject, offset: offset)
    }
  }

  /// Writes `text` without the member at `path`. Returns whether there was one.
  ///
  /// Without such a member it writes the text unchanged.
  @discardableResult
  public mutating func raw(_ text: UnsafeRawBufferPointer, removing path: [String]) throws(JSONError) -> Bool {
    guard !path.isEmpty else { throw JSONError(reason: .misplacedCall, offset: 0) }
    var search = MemberSearch(text, path: path, removing: true)
    _ = try search.place()
    guard !search.cuts.isEmpty else {
      raw(text)
      return false
    }
    var kept = 0
    raw(text.slice(0, 0))
    for cut in search.cuts {
      piece(text.slice(kept, cut.lowerBound))
      kept = cut.upperBound
    }
    piece(text.slice(kept, text.count))
    return true
  }
}

/// A walk through a text that finds the value of a path.
private struct MemberSearch {
  enum Place {
    /// The value at the end of the path.
    case value(JSONSpan)
    /// The object without a member for the path's name number `level`. A new member goes to `end`.
    case absent(end: Int, isEmpty: Bool, level: Int)
    /// The value at this offset is not an object, but the path needs one.
    case blocked(Int)
  }

  private var scanner: JSONScanner
  private let path: [String]
  private let isRemoval: Bool
  /// The ranges of the text to cut for a removal, in order.
  private(set) var cuts: [Range<Int>] = []

  init(_ text: UnsafeRawBufferPointer, path: [String], removing: Bool) {
    scanner = JSONScanner(text)
    self.path = path
    isRemoval = removing
  }

  mutating func place() throws(JSONError) -> Place {
    let place = try place(level: 0)
    try scanner.finish()
    return place
  }

  /// Walks the value at the first `level` names, to at most the scanner's depth.
  private mutating func place(level: Int) throws(JSONError) -> Place {
    guard level < path.count else { return .value(try scanner.skip()) }
    guard scanner.peekKind() == .object else { return .blocked(try scanner.skip().start) }
    try scanner.openObject()
    let isCut = isRemoval && level == path.count - 1
    var place: Place?
    var cuts: [Range<Int>] = []
    var end = scanner.position
    var isEmpty = true
    var keptSome = false
    while true {
      _ = scanner.peek()
      let comma = scanner.position
      guard let key = try scanner.nextKey() else { break }
      let isMatch = scanner.matches(key, text: path[level])
      if isMatch {
        self.cuts = []
        place = try self.place(level: level + 1)
      } else {
        try scanner.skip()
      }
      end = scanner.position
      // A cut takes the comma before it along. If all earlier members are cut, the first that stays loses its own comma.
      if isMatch, isCut {
        cuts.append((isEmpty ? key.start : comma)..<end)
      } else {
        if isCut, !isEmpty, !keptSome { cuts.append(comma..<comma + 1) }
        keptSome = true
      }
      isEmpty = false
    }
    if isCut, place != nil { self.cuts = cuts }
    return place ?? .absent(end: end, isEmpty: isEmpty, level: level)
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func slice(_ start: Int, _ end: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[start..<end]) }
}
