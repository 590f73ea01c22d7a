/// Values in numbered places: a number is all that a call carries until its answer comes. Numbers are used again, the last freed first.
public struct NumberedPlaces<Value> {
  @usableFromInline var places: [Value?] = []
  @usableFromInline var free: [Int] = []

  /// Without any.
  @inlinable public init() {}

  /// How many there are.
  @inlinable public var count: Int { places.count - free.count }

  /// Gives a value a place, and answers its number.
  @inlinable public mutating func add(_ value: Value) -> Int {
    guard let number = free.popLast() else {
      places.append(value)
      return places.count - 1
    }
    places[number] = value
    return number
  }

  /// The value of a number, whose place is free afterwards; nil where there is none.
  @inlinable public mutating func take(_ number: Int) -> Value? {
    guard places.indices.contains(number), let value = places[number] else { return nil }
    places[number] = nil
    free.append(number)
    return value
  }

  /// The value of a number, or nil where there is none.
  @inlinable public subscript(number: Int) -> Value? { places.indices.contains(number) ? places[number] : nil }

  /// Changes the value of a number, where there is one.
  @inlinable public mutating func update(_ number: Int, _ change: (inout Value) -> Void) {
    guard places.indices.contains(number), var value = places[number] else { return }
    places[number] = nil
    change(&value)
    places[number] = value
  }
}
