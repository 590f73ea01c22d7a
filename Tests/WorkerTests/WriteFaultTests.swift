import Testing
import Worker

@testable import Kafka

/// What cannot be written, as the brokers' metadata shows it.
@Suite struct WriteFaultTests {
  private static let topic = "n.events"

  private static func faults(leader: Int32 = 1, inSync: [Int32], minimum: Int? = 2, silent: Set<Int32> = []) -> [WriteFault.Cause] {
    var partition = TopicDescription.Partition(id: 0, leader: leader, replicas: 3, inSync: inSync.count)
    partition.inSyncBrokers = inSync
    let cluster = ClusterDescription(
      id: "c", brokers: [:], topics: [topic: TopicDescription(name: topic, partitions: [partition])])
    let limits = WriteLimits(minimumInSync: minimum.map { [topic: $0] } ?? [:])
    return WriteFault.faults(of: [topic, "n.missing"], in: cluster, limits, silent: silent).map(\.cause)
  }

  @Test func `a topic with enough copies in step can be written`() {
    #expect(Self.faults(inSync: [1, 2, 3]) == [])
    #expect(Self.faults(inSync: [1, 2], silent: [3]) == [])
    #expect(Self.faults(inSync: [1], minimum: nil) == [])
  }

  @Test func `a topic with fewer copies in step than it asks for cannot be written`() {
    #expect(Self.faults(inSync: [1]) == [.tooFewInSync(minimum: 2)])
  }

  @Test func `a topic whose copies count as in step cannot be written while their brokers are silent`() {
    #expect(Self.faults(inSync: [1, 2, 3], silent: [2, 3]) == [.silent(minimum: 2)])
    #expect(Self.faults(inSync: [1, 2, 3], silent: [3]) == [])
  }

  @Test func `a topic without a leader that answers cannot be written`() {
    #expect(Self.faults(leader: -1, inSync: [1, 2, 3]) == [.leaderless])
    #expect(Self.faults(leader: 2, inSync: [1, 2, 3], silent: [2]) == [.leaderless])
  }
}
