import EventLoop
import Kafka
import Store
import Worker

/// Whether Redis has what it should: its buckets, and the registrations that Kafka has. Loop-confined.
///
/// A Redis without buckets is either new, and then nothing was ever registered, or it has lost everything and has to be rebuilt; one that
/// was away may have lost the end of its history, which the transform workers restore.
final class RedisWatch {
  private let shards: Shards
  private let markers: Markers
  private let topics: Topics
  private let admin: Admin
  private let timer: Timer
  private var doubts = 0
  private(set) var isChecking = false
  private var isClosed = false
  /// Whether the registry has all that Kafka had when the connection came up.
  private(set) var isRegistryComplete = false
  /// Told what Redis lacks, or nil when it lacks nothing.
  var onFinding: ((String?) -> Void)?

  /// - Parameter ask: has `check` run in a task of the lane.
  init(on loop: EventLoop, _ shards: Shards, _ topics: Topics, _ admin: Admin, ask: @escaping () -> Void) {
    self.shards = shards
    self.topics = topics
    self.admin = admin
    markers = Markers(shards)
    timer = Timer(on: loop, ask)
  }

  /// The connection is gone, or a script found no bucket: look again.
  func lost() {
    isRegistryComplete = false
    doubts += 1
    if !isClosed { timer.start(after: 1) }
  }

  /// Looks, and looks again until nothing is missing.
  func check() async {
    guard shards.isUp, !isChecking, !isClosed else { return }
    isChecking = true
    let before = doubts
    let missing = await whatIsMissing()
    isChecking = false
    guard !isClosed else { return }
    guard before == doubts else { return timer.start(after: 1) }
    isRegistryComplete = missing == nil
    onFinding?(missing?.reason)
    timer.start(after: missing?.milliseconds ?? Self.idleMilliseconds)
  }

  /// How often it looks without a reason.
  private static let idleMilliseconds = 10_000

  private func whatIsMissing() async -> (reason: String, milliseconds: Int)? {
    guard let buckets = await markers.read([]) else { return ("Redis does not answer", 500) }
    do {
      let missing = buckets.indices.filter { buckets[$0] == nil }
      if isRegistryComplete, missing.isEmpty { return nil }
      let ends = try await admin.registryEnds(topics)
      if !missing.isEmpty {
        guard ends.isEmpty else {
          return ("Redis has lost what it had, though devices are registered in Kafka: run 'carillon rebuild'", 2_000)
        }
        if let error = await markers.create(missing) { return ("\(error)", 500) }
      }
      return await markers.hasRegistry(upTo: ends) == true ? nil : ("a transform worker is restoring the registry", 200)
    } catch {
      return ("the registry's end is not known: \(error)", 1_000)
    }
  }

  /// Ends it.
  func close() async {
    isClosed = true
    timer.close()
    await admin.close()
  }
}
