// Changes in place: a container that nobody else holds is not copied.
extension JSONValue {
  /// Changes the value of the member with this name, the last one if there are several; a missing member is `nil` before, and one that is
  /// `nil` after is removed with all of its repetitions. What is no object stays as it is, and `body` is not called.
  ///
  /// - Returns: what `body` returned; `nil` when this is no object.
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

  /// Changes an element; `nil` when there is none at this place, or this is no array.
  @discardableResult
  public mutating func withElement<Result>(_ index: Int, _ body: (inout JSONValue) -> Result) -> Result? {
    guard case .array(var elements) = self, elements.indices.contains(index) else { return nil }
    self = .null
    defer { self = .array(elements) }
    return body(&elements[index])
  }

  /// Sets the member with this name, or removes it; what is no object stays as it is.
  public mutating func set(_ key: String, _ value: JSONValue?) { withMember(key) { $0 = value } }

  /// Changes the value as a merge patch says, by RFC 7396: members of an object that are `null` are removed, objects are merged, and
  /// anything else takes the place of what was there.
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
  /// Whether the value certainly takes more bytes than so many when it is written. It costs no more than a value of that size does, however
  /// large this one is.
  public func isLarger(than bytes: Int) -> Bool {
    var left = bytes
    return !fits(&left)
  }

  /// Takes what the value needs at least from what is left; false when that is not enough.
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
