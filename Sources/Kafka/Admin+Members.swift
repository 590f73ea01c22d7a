import CRdKafka

/// The members of a consumer group.
public struct GroupMembers: Sendable, Hashable {
  /// One consumer of the group.
  public struct Member: Sendable, Hashable {
    /// The group's name for it.
    public var id: String
    /// The client's own name.
    public var client: String
    /// Where it connects from, as the coordinator writes it: `/10.0.0.7`.
    public var host: String
    /// Its partitions; empty while the group is forming.
    public var partitions: [TopicPartition]
  }

  /// `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance`, or `Dead`, which is also the state of a missing group.
  public var state: String
  /// Its members.
  public var members: [Member]

  /// Whether the group is distributing its partitions now, so their owners are unknown.
  public var isForming: Bool { state == "PreparingRebalance" || state == "CompletingRebalance" }
}

extension Admin {
  /// Reads the members of a group with their partitions. Not on the embedded broker.
  ///
  /// It asks all brokers for their groups. librdkafka's admin request asks only the coordinator, and ends the process if that connection
  /// breaks at the wrong moment (librdkafka issue 4605).
  public func members(of group: String) async throws(KafkaError) -> GroupMembers {
    let operation = "describe group \(group)"
    for _ in 0..<3 {
      let found = try await ask(operation) { client, timeout throws(KafkaError) in
        try describedMembers(of: group, client, operation, timeout)
      }
      if let found { return found }
      // One broker's answer hides that another did not answer. A coordinator that is loading its groups lists none.
      let listed = try await groups(ofAllBrokers: true)
      guard listed.contains(where: { $0.name == group }) else { return GroupMembers(state: "Dead", members: []) }
      // The group may have appeared between the two questions.
      try? await Task.sleep(for: .milliseconds(100))
    }
    throw KafkaError(KafkaError.Code(RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE), operation)
  }
}

/// The group's members by its coordinator; nil if no broker that answers knows the group. It blocks.
private func describedMembers(
  of group: String, _ client: OpaquePointer, _ operation: String, _ timeout: Int32
) throws(KafkaError) -> GroupMembers? {
  var list: UnsafePointer<rd_kafka_group_list>?
  let code = rd_kafka_list_groups(client, group, &list, timeout)
  defer { if let list { rd_kafka_group_list_destroy(list) } }
  // Partial means that a broker did not answer in time. The answers that came may include the group.
  if code != RD_KAFKA_RESP_ERR__PARTIAL { try check(code, operation) }
  guard let list else { return nil }
  for place in 0..<Int(list.pointee.group_cnt) {
    let each = list.pointee.groups[place]
    guard String(cString: each.group) == group else { continue }
    try check(each.err, operation)
    let members = (0..<Int(each.member_cnt)).map { place in
      let member = each.members[place]
      let bytes = UnsafeRawBufferPointer(start: member.member_assignment, count: Int(member.member_assignment_size))
      return GroupMembers.Member(
        id: String(cString: member.member_id), client: String(cString: member.client_id), host: String(cString: member.client_host),
        partitions: GroupAssignment.partitions(bytes))
    }
    return GroupMembers(state: String(cString: each.state), members: members)
  }
  if code == RD_KAFKA_RESP_ERR__PARTIAL { throw KafkaError(.timedOut, operation) }
  return nil
}

/// The partitions that a group assigns to a member, in the format `ConsumerProtocolAssignment` and network byte order.
enum GroupAssignment {
  /// Reads the partitions; empty for bytes of another format.
  static func partitions(_ bytes: UnsafeRawBufferPointer) -> [TopicPartition] {
    var rest = bytes[...]
    var partitions: [TopicPartition] = []
    guard number(2, &rest) != nil, let topics = number(4, &rest) else { return [] }
    for _ in 0..<max(0, topics) {
      guard let length = number(2, &rest), length >= 0, rest.count >= length else { return [] }
      let topic = String(decoding: rest.prefix(length), as: UTF8.self)
      rest = rest.dropFirst(length)
      guard let count = number(4, &rest), count >= 0, rest.count / 4 >= count else { return [] }
      for _ in 0..<count { number(4, &rest).map { partitions.append(TopicPartition(topic, Int32(truncatingIfNeeded: $0))) } }
    }
    return partitions
  }

  /// Reads a signed number of this many bytes; nil if they are missing.
  private static func number(_ count: Int, _ rest: inout Slice<UnsafeRawBufferPointer>) -> Int? {
    guard rest.count >= count else { return nil }
    let value = rest.prefix(count).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    rest = rest.dropFirst(count)
    return count == 2 ? Int(Int16(truncatingIfNeeded: value)) : Int(Int32(bitPattern: value))
  }
}
