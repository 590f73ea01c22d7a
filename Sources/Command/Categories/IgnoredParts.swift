import JSON

/// The parts of a JSON text that a reader did not take: unknown members and words, and repeated members. They are mostly typing errors.
enum IgnoredParts {
  /// Compares a text with what its reader took, written again. Returns the paths of the ignored parts.
  static func paths(in text: JSONValue, taken: JSONValue, at path: String) -> [String] {
    switch text {
    case .object(let members):
      var (paths, seen): ([String], Set<[UInt8]>) = ([], [])
      for member in members {
        let place = "\(path).\(member.key)"
        if !seen.insert(Array(member.key.utf8)).inserted {
          paths.append(place)
        } else if let part = taken[member.key] {
          paths += Self.paths(in: text[member.key] ?? member.value, taken: part, at: place)
        } else if !isEmpty(member.value) {
          paths.append(place)
        }
      }
      return paths
    case .array(let elements):
      // An array of words may be read in another order, an array of objects is not.
      guard elements.contains(where: { $0.members != nil }) else {
        return elements.filter { taken.elements?.contains($0) != true }.map { "\(path): \($0.text)" }
      }
      return elements.indices.flatMap { index in
        taken[index].map { Self.paths(in: elements[index], taken: $0, at: "\(path)[\(index)]") } ?? []
      }
    case .string, .number, .bool, .null: return []
    }
  }

  /// Whether leaving the value out means the same.
  private static func isEmpty(_ value: JSONValue) -> Bool {
    switch value {
    case .null, .bool(false): true
    case .array(let elements): elements.isEmpty
    case .object, .string, .number, .bool(true): false
    }
  }
}
