package import EventLoop
import JSON
package import Kafka
import Notifications
package import Worker

/// The devices of a load run that are registered, by the topic `devices`.
package enum LoadRegistrations {
  private final class Found {
    var tokens: Set<Name> = []
  }

  /// Reads the numbers of the registered devices of a run. Call it on the loop.
  package static func read(_ names: LoadNames, on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics) async throws -> [Int] {
    let (found, application) = (Found(), names.application)
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topics.devices) }
    try await TopicReader(on: loop, kafka).read(stretches, "devices", isCompacted: true) { record in
      guard let key = record.key else { return }
      let isOfRun = record.value.map { isOf(application, $0) } ?? false
      if isOfRun { found.tokens.insert(Name(key)) } else { found.tokens.remove(Name(key)) }
    }
    return found.tokens.compactMap { $0.withBytes(names.device) }.sorted()
  }

  private static func isOf(_ application: Name, _ registration: UnsafeRawBufferPointer) -> Bool {
    var scanner = JSONScanner(registration)
    var isOf = false
    do throws(JSONError) {
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        let value = try scanner.skip()
        if scanner.matches(key, "application") { isOf = scanner.matches(value, text: application.text) }
      }
    } catch { return false }
    return isOf
  }
}
