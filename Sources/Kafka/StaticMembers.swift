import CRdKafka
import EventLoop

/// Static members of a group: they have names of their own, and keep their places until they leave or are removed.
public enum StaticMembers {
  /// Removes members from a group, so that others get their partitions at once. A removed one that lives has to join again.
  ///
  /// librdkafka 2.0.2 cannot ask the coordinator for that. For each member a consumer takes its place by its `group.instance.id`, which
  /// fences the member, and leaves. All take their places before one leaves: from then on a place is given only when the group has formed.
  ///
  /// - Parameters:
  ///   - names: what the members have as `group.instance.id`.
  ///   - topic: what the group reads. If a member wanted something else, the group would form once more.
  ///   - milliseconds: the longest time.
  /// - Returns: the names of those that have left.
  public static func remove(
    _ names: [String], from group: String, reading topic: String, sessionTimeoutMilliseconds: Int,
    withinMilliseconds milliseconds: Int64, _ configuration: KafkaConfiguration
  ) async throws(KafkaError) -> [String] {
    var options = Consumer.Options(group: group)
    options.sessionTimeoutMilliseconds = sessionTimeoutMilliseconds
    return try await NamedThread.run("kafka-remove") { [options] in
      let end = SteadyClock.milliseconds() + milliseconds
      var members: [(name: String, client: ClientHandle, rebalances: RebalanceInbox)] = []
      defer { for member in members { member.client.end(leavingGroup: true) } }
      do throws(KafkaError) {
        for name in names {
          var options = options
          options.instanceID = name
          let object = try configuration.object(defaults: options.membership, forConsumer: true)
          try object.leaveOutLog()
          let rebalances = RebalanceInbox(isStatic: true)
          // It takes no partition.
          rebalances.close()
          let client = try ClientHandle(RD_KAFKA_CONSUMER, object, rebalances: rebalances)
          members.append((name, client, rebalances))
          let list = PartitionList([TopicPartition(topic, RD_KAFKA_PARTITION_UA)])
          try check(rd_kafka_subscribe(client.pointer, list.pointer), "take the place of \(name)")
        }
      } catch { return .failure(error) }
      ClientHandle.serve(members.map(\.client), by: end) { $0.isAssigned }
      ClientHandle.leaveGroup(members.map(\.client), by: end)
      return .success(members.filter { $0.rebalances.isAssigned && !$0.rebalances.isMember }.map(\.name))
    }
  }
}
