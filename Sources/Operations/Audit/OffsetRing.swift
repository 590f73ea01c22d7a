/// Elements by offset within a bounded stretch. A value.
///
/// It grows to its maximum number of slots. After that a new element takes the slot of the element that is a full ring away.
struct OffsetRing<Element> {
  private var slots: [(offset: Int64, element: Element)?]
  private let maximum: Int
  /// The number of elements.
  private(set) var count = 0

  /// - Parameter maximum: the maximum number of slots, a power of two.
  init(maximum: Int) {
    precondition(maximum > 0 && maximum & (maximum - 1) == 0, "a ring's length is a power of two")
    self.maximum = maximum
    slots = Array(repeating: nil, count: min(256, maximum))
  }

  private func slot(_ offset: Int64) -> Int { Int(truncatingIfNeeded: offset) & (slots.count - 1) }

  /// Whether the offset has an element.
  func contains(_ offset: Int64) -> Bool { slots[slot(offset)]?.offset == offset }

  /// Stores an element at a free offset. Returns the element that must leave, perhaps this one.
  mutating func put(_ element: Element, at offset: Int64) -> (offset: Int64, element: Element)? {
    while let other = slots[slot(offset)], slots.count < maximum {
      precondition(other.offset != offset, "an offset has one element")
      grow()
    }
    let place = slot(offset)
    let other = slots[place]
    // The later one is more likely to find its partner.
    if let other, other.offset > offset { return (offset, element) }
    slots[place] = (offset, element)
    if other == nil { count += 1 }
    return other
  }

  /// Removes the element of an offset.
  mutating func take(_ offset: Int64) -> Element? {
    let place = slot(offset)
    guard let slot = slots[place], slot.offset == offset else { return nil }
    slots[place] = nil
    count -= 1
    return slot.element
  }

  /// Removes all elements.
  mutating func takeAll(_ body: (Element) -> Void) {
    guard count > 0 else { return }
    for place in slots.indices {
      if let slot = slots[place] { body(slot.element) }
      slots[place] = nil
    }
    count = 0
  }

  private mutating func grow() {
    var old: [(offset: Int64, element: Element)?] = Array(repeating: nil, count: slots.count * 2)
    swap(&old, &slots)
    for case let entry? in old { slots[slot(entry.offset)] = entry }
  }
}
