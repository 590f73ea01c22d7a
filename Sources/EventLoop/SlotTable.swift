/// Values in numbered slots. A call carries only the number until its answer comes.
///
/// Freed numbers are used again, the last one first.
public struct SlotTable<Value> {
  @usableFromInline var slots: [Value?] = []
  @usableFromInline var free: [Int] = []

  /// Makes an empty table.
  @inlinable public init() {}

  /// The number of values.
  @inlinable public var count: Int { slots.count - free.count }

  /// Stores a value and answers its number.
  @inlinable public mutating func add(_ value: Value) -> Int {
    guard let number = free.popLast() else {
      slots.append(value)
      return slots.count - 1
    }
    slots[number] = value
    return number
  }

  /// Removes and returns the value of a number; nil if there is none.
  @inlinable public mutating func take(_ number: Int) -> Value? {
    guard slots.indices.contains(number), let value = slots[number] else { return nil }
    slots[number] = nil
    free.append(number)
    return value
  }

  /// The value of a number; nil if there is none.
  @inlinable public subscript(number: Int) -> Value? { slots.indices.contains(number) ? slots[number] : nil }

  /// Changes the value of a number, if there is one.
  @inlinable public mutating func update(_ number: Int, _ change: (inout Value) -> Void) {
    guard slots.indices.contains(number), var value = slots[number] else { return }
    slots[number] = nil
    change(&value)
    slots[number] = value
  }
}
