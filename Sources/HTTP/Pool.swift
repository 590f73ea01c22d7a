/// Objects that are not in use, kept for the next need.
struct Pool<Object: AnyObject> {
  private var free: [Object] = []
  private let limit: Int
  private let make: () -> Object

  /// - Parameter limit: the most objects that are kept. More returned ones are freed.
  init(limit: Int, make: @escaping () -> Object) {
    self.limit = limit
    self.make = make
  }

  mutating func take() -> Object { free.popLast() ?? make() }

  mutating func giveBack(_ object: Object) {
    if free.count < limit { free.append(object) }
  }
}
