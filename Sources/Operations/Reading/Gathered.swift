/// The value that the callbacks of one reading change.
final class Gathered<Value> {
  var value: Value

  init(_ value: Value) { self.value = value }
}
