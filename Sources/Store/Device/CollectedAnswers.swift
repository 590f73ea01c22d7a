/// The answers of several calls that are asked together. The callback runs when the last one has arrived. Loop-confined.
final class CollectedAnswers<Value> {
  private var values: [Value?]
  private var left: Int
  private var failure: StoreError?
  private let then: (Result<[Value?], StoreError>) -> Void

  /// - Parameter count: how many answers will come; at least 1.
  init(_ count: Int, _ then: @escaping (Result<[Value?], StoreError>) -> Void) {
    (values, left, self.then) = (Array(repeating: nil, count: count), count, then)
  }

  /// Takes an answer. An unreadable one counts as nil: another call, which needs the key itself, reports it.
  func take(_ number: Int, _ answer: Result<Value?, StoreError>) {
    switch answer {
    case .success(let value): values[number] = value
    case .failure(let error) where error.code == .faulty: break
    case .failure(let error): failure = failure ?? error
    }
    left -= 1
    if left == 0 { then(failure.map { .failure($0) } ?? .success(values)) }
  }
}
