/// Changing one member of a text and leaving every other byte as it is.
///
/// The text is checked whole before anything is written, so after an error the writer holds what it held. What a path leads through are
/// names of members, from the outermost object inwards. Of several members with the same name the last one is meant, as most readers
/// take it; a removal takes them all, so that no earlier one comes to light.
extension JSONWriter {
  /// Writes `text` with the member at `path` set to `value`, which is JSON text already and is answered for by the caller.
  ///
  /// A member that is not there becomes the last of its object, and objects on the way that are not there are made. An empty path means
  /// the whole text. Throws `notAnObject` when the path leads through another kind of value.
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

  /// Writes `text` without the member at `path`, and says whether there was one; if not, the text is written unchanged.
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

/// One walk through a text that finds what a path leads to.
private struct MemberSearch {
  enum Place {
    /// The value that the path leads to.
    case value(JSONSpan)
    /// The object where the path's name of number `level` is missing; `end` is where a further member goes.
    case absent(end: Int, isEmpty: Bool, level: Int)
    /// The value at this offset would have to be an object.
    case blocked(Int)
  }

  private var scanner: JSONScanner
  private let path: [String]
  private let isRemoval: Bool
  /// What has to go from the text to remove what was found, in order.
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

  /// Walks the value that the first `level` names have led to. It goes no deeper than the scanner's limit.
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
      // What goes takes the comma before it along; when all before has gone too, the first that stays must lose its own.
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
