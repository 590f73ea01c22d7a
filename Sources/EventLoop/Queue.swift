/// A queue whose front is removed in constant time.
public struct Queue<Element> {
  private var elements: [Element] = []
  private var head = 0

  /// Makes an empty queue.
  public init() {}

  /// Whether nothing is in it.
  public var isEmpty: Bool { head == elements.count }
  /// How many are in it.
  public var count: Int { elements.count - head }
  /// The oldest; nil if it is empty.
  public var first: Element? { isEmpty ? nil : elements[head] }

  /// Adds the newest.
  public mutating func append(_ element: Element) { elements.append(element) }

  /// Removes the oldest; nil if it is empty.
  @discardableResult
  public mutating func popFirst() -> Element? {
    guard let element = first else { return nil }
    head += 1
    if isEmpty || head > 64 && head * 2 > elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Removes the newest; nil if it is empty.
  public mutating func popLast() -> Element? { isEmpty ? nil : elements.removeLast() }
}

extension Queue: Sendable where Element: Sendable {}
