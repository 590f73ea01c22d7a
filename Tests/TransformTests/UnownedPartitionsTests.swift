import Testing

@testable import Kafka
@testable import Transform

/// When a lane without a partition joins its group again.
@Suite struct UnownedPartitionsTests {
  private static let partitions = (0..<4).map { TopicPartition("requests", Int32($0)) }

  private func group(_ state: String = "Stable", _ owned: [Int]...) -> GroupMembers {
    GroupMembers(
      state: state,
      members: owned.map { .init(id: "m", client: "c", host: "/10.0.0.7", partitions: $0.map { Self.partitions[$0] }) })
  }

  private func found(_ groups: GroupMembers...) -> [[Int32]] {
    var unowned = UnownedPartitions()
    return groups.map { unowned.lasting(among: Self.partitions, in: $0).map(\.partition) }
  }

  @Test func aGroupThatGaveNobodyAnythingIsFoundAtTheSecondLook() {
    #expect(found(group("Stable", []), group("Stable", [], [])) == [[], [0, 1, 2, 3]])
  }

  @Test func aMemberThatIsOneTooManyIsLeftAlone() {
    let all = group("Stable", [0, 1], [2, 3], [])
    #expect(found(all, all, all) == [[], [], []])
  }

  @Test func aPartitionOnItsWayFromOneMemberToAnotherHasAnOwner() {
    #expect(found(group("Stable", [0, 1, 2], []), group("Stable", [0, 1, 2], [3]), group("Stable", [0, 1, 2], [])) == [[], [], []])
  }

  @Test func aGroupThatFormsTellsNothing() {
    let forming = group("PreparingRebalance", [], [])
    #expect(found(forming, forming) == [[], []])
    #expect(found(group("Stable", []), forming, group("Stable", [])) == [[], [], []])
  }

  @Test func onlyWhatLastedIsNamed() {
    #expect(found(group("Stable", [0], []), group("Stable", [1, 2], [])) == [[], [3]])
  }
}
