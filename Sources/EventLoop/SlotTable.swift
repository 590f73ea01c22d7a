/// Values in numbered slots: a number is all that a call carries until its answer comes. Numbers are used again, the last freed first.
public struct SlotTable<Value> {
  @usableFromInline var slots: [Value?] = []
  @usableFromInline var free: [Int] = []

  /// Without any.
  @inlinable public init() {}

  /// How many there are.
  @inlinable public var count: Int { slots.count - free.count }

  /// Gives a value a slot, and answers its number.
  @inlinable public mutating func add(_ value: Value) -> Int {
    guard let number = free.popLast() else {
      slots.append(value)
      return slots.count - 1
    }
    slots[number] = value
    return number
  }

  /// The value of a number, whose slot is free afterwards; nil where there is none.
  @inlinable public mutating func take(_ number: Int) -> Value? {
    guard slots.indices.contains(number), let value = slots[number] else { return nil }
    slots[number] = nil
    free.append(number)
    return value
  }

  /// The value of a number, or nil where there is none.
  @inlinable public subscript(number: Int) -> Value? { slots.indices.contains(number) ? slots[number] : nil }

  /// Changes the value of a number, where there is one.
  @inlinable public mutating func update(_ number: Int, _ change: (inout Value) -> Void) {
    guard slots.indices.contains(number), var value = slots[number] else { return }
    slots[number] = nil
    change(&value)
    slots[number] = value
  }
}
