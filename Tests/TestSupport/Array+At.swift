extension Array {
  /// The element at an index; nil where there is none, so that a test fails by its expectation and takes no other tests down.
  public subscript(at index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
