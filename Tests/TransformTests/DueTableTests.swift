import TestSupport
import Testing

@testable import Transform

/// When a lane asks Redis what is due.
@Suite struct DueTableTests {
  private typealias Place = DueTable.Place

  @Test func `an idle lane asks each place once, and then nothing`() {
    var table = DueTable(buckets: 100)
    table.add(3)
    var asked: [DueTable.Place] = []
    while case .ask(let questions) = table.step(at: 0) {
      asked += questions.map(\.place)
      #expect(questions.count <= DueTable.maximumAsked)
      for question in questions { table.answered(nil, to: question) }
    }
    #expect(asked.count == 100 && Set(asked).count == 100)
    #expect(table.step(at: .max) == .idle)
    table.written(50, at: Place(partition: 3, bucket: 7))
    #expect(table.step(at: 49) == .wait(until: 50))
    #expect(table.step(at: 50) == .ask([.init(place: Place(partition: 3, bucket: 7), number: 101)]))
  }

  /// A Redis as a person would keep it, with answers that are on their way.
  private struct Model {
    var due: [DueTable.Place: [Int64]] = [:]
    var owned: Set<Int32> = []
    var underway: [(question: DueTable.Question, next: Int64?)] = []
  }

  @Test(arguments: 0..<(isComplete ? 100 : 20)) func `whatever is due is asked for, and nothing else after the first time`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (table, model) = (DueTable(buckets: 3), Model())
    var now: Int64 = 0
    for step in 0..<300 {
      now += Int64.random(in: 0...3, using: &random)
      let place = Place(partition: Int32.random(in: 0...2, using: &random), bucket: Int.random(in: 0..<3, using: &random))
      switch Int.random(in: 0..<12, using: &random) {
      case 0:
        table.add(place.partition)
        model.owned.insert(place.partition)
      case 1:
        table.remove(place.partition)
        model.owned.remove(place.partition)
      case 2: table.forgetAll()
      case 3...6:
        // Written by this lane, which has the partition, or by its owner.
        let due = now + Int64.random(in: -2...20, using: &random)
        model.due[place, default: []].append(due)
        if model.owned.contains(place.partition) { table.written(due, at: place) }
      case 7...9:
        guard let index = model.underway.indices.randomElement(using: &random) else { break }
        let (question, next) = model.underway.remove(at: index)
        if Int.random(in: 0..<5, using: &random) == 0 { table.failed(question) } else { table.answered(next, to: question) }
      default: break
      }
      if case .ask(let questions) = table.step(at: now) {
        for question in questions {
          let place = question.place
          #expect(model.owned.contains(place.partition), "seed \(seed), step \(step)")
          // What is due fires, and is due no more.
          model.due[place]?.removeAll { $0 <= now }
          model.underway.append((question, model.due[place]?.min()))
        }
      }
    }
    // All answers arrive, and time goes on: whatever is due of the lane's partitions has been asked for.
    for _ in 0..<400 {
      if model.underway.isEmpty { now += 1 }
      for (question, next) in model.underway { table.answered(next, to: question) }
      model.underway = []
      if case .ask(let questions) = table.step(at: now) {
        for question in questions {
          let place = question.place
          model.due[place]?.removeAll { $0 <= now }
          model.underway.append((question, model.due[place]?.min()))
        }
      }
    }
    for (place, due) in model.due where model.owned.contains(place.partition) { #expect(due.isEmpty, "seed \(seed): \(place) \(due)") }
  }
}
