/// A queue whose front is removed in constant time.
struct Queue<Element> {
  private var elements: [Element] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }
  var count: Int { elements.count - head }
  var first: Element? { isEmpty ? nil : elements[head] }

  mutating func append(_ element: Element) { elements.append(element) }

  @discardableResult
  mutating func popFirst() -> Element? {
    guard let element = first else { return nil }
    head += 1
    if isEmpty || head > 64 && head * 2 > elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  mutating func popLast() -> Element? { isEmpty ? nil : elements.removeLast() }
}

extension Queue: Sendable where Element: Sendable {}
