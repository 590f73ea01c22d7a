import Kafka
import Notifications
import Worker

extension ClusterTool {
  /// Reads the numbers of the registered devices of a load run, from the topic `devices`.
  package func devices(of run: LoadNames) async throws -> [Int] {
    let (found, application, topic) = (Gathered(Set<Name>()), run.application, rules.topics.devices)
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }
    try await reader.read(stretches, "devices", isCompacted: true) { record in
      guard let key = record.key else { return }
      let registered = record.value.flatMap { try? Registration.memberships(json: $0) }
      if registered?.application == application { found.value.insert(Name(key)) } else { found.value.remove(Name(key)) }
    }
    return found.value.compactMap { $0.withBytes(run.device) }.sorted()
  }
}
