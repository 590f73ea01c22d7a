/// Objects that are not in use, kept for the next need.
struct Pool<Object: AnyObject> {
  private var free: [Object] = []
  /// The most objects that are kept. More returned ones are freed.
  private static var limit: Int { 64 }
  private let make: () -> Object

  init(make: @escaping () -> Object) { self.make = make }

  mutating func take() -> Object { free.popLast() ?? make() }

  mutating func giveBack(_ object: Object) {
    if free.count < Self.limit { free.append(object) }
  }
}
