// Changes in place: a container without other owners is not copied.
extension JSONValue {
  /// Changes the value of the member with this name; of several, the last one.
  ///
  /// `body` gets `nil` for a missing member. A member that is `nil` afterwards is removed with all of its repetitions. A value that is not
  /// an object is unchanged, and `body` is not called.
  ///
  /// - Returns: what `body` returned; `nil` if this is not an object.
  @discardableResult
  public mutating func withMember<Result>(_ key: String, _ body: (inout JSONValue?) -> Result) -> Result? {
    guard case .object(var members) = self else { return nil }
    self = .null
    defer { self = .object(members) }
    guard let place = members.lastIndex(where: { $0.key.hasBytes(of: key) }) else {
      var value: JSONValue?
      let result = body(&value)
      if let value { members.append(Member(key: key, value: value)) }
      return result
    }
    var value: JSONValue? = members[place].value
    members[place].value = .null
    let result = body(&value)
    if let value { members[place].value = value } else { members.removeAll { $0.key.hasBytes(of: key) } }
    return result
  }

  /// Changes an element; returns `nil` without one, or if this is no array.
  @discardableResult
  public mutating func withElement<Result>(_ index: Int, _ body: (inout JSONValue) -> Result) -> Result? {
    guard case .array(var elements) = self, elements.indices.contains(index) else { return nil }
    self = .null
    defer { self = .array(elements) }
    return body(&elements[index])
  }

  /// Sets or removes the member with this name. A value that is not an object is unchanged.
  public mutating func set(_ key: String, _ value: JSONValue?) { withMember(key) { $0 = value } }

  /// Applies a merge patch by RFC 7396.
  ///
  /// It removes members that are `null` in the patch and merges objects. Any other value of the patch replaces the former one.
  public mutating func merge(_ patch: JSONValue) {
    guard case .object(let changes) = patch else {
      self = patch
      return
    }
    if case .object = self {} else { self = .object([]) }
    for change in changes {
      if change.value == .null {
        set(change.key, nil)
      } else {
        withMember(change.key) { member in
          var value = member ?? .null
          member = nil
          value.merge(change.value)
          member = value
        }
      }
    }
  }
}

extension JSONValue {
  /// Whether the value certainly needs more than this number of bytes as text.
  ///
  /// The cost does not exceed that of a value of this size.
  public func isLarger(than bytes: Int) -> Bool {
    var left = bytes
    return !fits(&left)
  }

  /// Subtracts the value's minimum size from `left`; false if that is too little.
  private func fits(_ left: inout Int) -> Bool {
    switch self {
    case .object(let members):
      left -= 2
      for member in members {
        left -= member.key.utf8.count + 3
        guard left >= 0, member.value.fits(&left) else { return false }
      }
    case .array(let elements):
      left -= 2
      for element in elements { guard left >= 0, element.fits(&left) else { return false } }
    case .string(let text): left -= text.utf8.count + 2
    case .number(let text): left -= text.utf8.count
    case .bool, .null: left -= 4
    }
    return left >= 0
  }
}
