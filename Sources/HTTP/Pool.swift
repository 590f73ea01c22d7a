/// Objects that were made and are not in use, kept for the next one who needs one. Loop-confined.
struct Pool<Object: AnyObject> {
  private var free: [Object] = []
  private let limit: Int
  private let make: () -> Object

  /// - Parameter limit: how many are kept at most; what is given back beyond it is freed.
  init(limit: Int, make: @escaping () -> Object) {
    self.limit = limit
    self.make = make
  }

  mutating func take() -> Object { free.popLast() ?? make() }

  mutating func giveBack(_ object: Object) {
    if free.count < limit { free.append(object) }
  }
}
