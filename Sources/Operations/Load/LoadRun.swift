package import EventLoop
import HTTP
import Kafka
import Notifications
import Worker

/// A load run: its devices connect, its requests are published when they are due, and each is followed to its devices. An actor on a loop.
///
/// Call `connect`, then `publish` once or several times, then `unregister` and `close`.
package actor LoadRun: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let share: LoadShare
  private var plan: LoadPlan { share.plan }
  private let run: String
  private let place: LoadPlace
  private let onViolation: @Sendable (LoadFinding) -> Void
  private var core: LoadCore?
  private var isStopped = false

  /// How long all devices together may make no progress while they connect or unregister, in milliseconds.
  private static let progressMilliseconds: Int64 = 60_000
  /// How long before its start a run gets ready for it, and by how much its clock may differ from the cluster's, in milliseconds.
  private static let (leadMilliseconds, clockMilliseconds) = (5_000 as Int64, 10_000 as Int64)
  /// How often a run looks at what is open, in milliseconds, and how often it decides what is lost.
  private static let (lookMilliseconds, sweepNanoseconds) = (100, 1_000_000_000 as Int64)

  /// Describes a run, which does nothing until `connect`.
  ///
  /// - Parameter onViolation: gets each violation at once, on the loop.
  package init(
    on loop: EventLoop, _ share: LoadShare, run: String, _ place: LoadPlace,
    onViolation: @escaping @Sendable (LoadFinding) -> Void
  ) {
    (self.loop, self.share, self.run, self.place, self.onViolation) = (loop, share, run, place, onViolation)
  }

  /// Ends `connect` or `publish` soon.
  package func stop() {
    isStopped = true
    core?.isStopped = true
  }

  /// The numbers so far; nil before `connect` and after `close`.
  package var result: LoadResult? { core?.result }

  // MARK: The devices

  /// Connects all devices, and returns when each was welcomed.
  ///
  /// - Throws: ``LoadRefusal/noDevices(_:connected:of:)`` if a device is refused, or if none connects for a minute.
  package func connect() async throws {
    let names = share.names(run: run, series: .random(in: 1...UInt64.max))
    let core = LoadCore(on: loop, share, names, place, onViolation: onViolation) { [weak self] device, url in
      guard let self else { return }
      Task(executorPreference: loop) { await self.connect(device, to: url) }
    }
    self.core = core
    core.fleet?.begin()
    var last = (connected: 0, at: SteadyClock.milliseconds())
    while let fleet = core.fleet, fleet.counts.connected < plan.devices.count, !isStopped {
      await loop.sleep(milliseconds: Self.lookMilliseconds)
      let now = SteadyClock.milliseconds()
      if fleet.counts.connected > last.connected { last = (fleet.counts.connected, now) }
      let isStuck = now - last.at > Self.progressMilliseconds
      if let failure = fleet.failure, failure.isFinal || isStuck {
        throw LoadRefusal.noDevices(failure.text, connected: fleet.counts.connected, of: plan.devices.count)
      }
      if isStuck { throw LoadRefusal.noDevices("no welcome came", connected: fleet.counts.connected, of: plan.devices.count) }
    }
  }

  private func connect(_ device: Int, to url: String) async {
    guard let fleet = core?.fleet else { return }
    do throws(WebSocketClientError) {
      _ = try await fleet.client.connect(to: url, handler: fleet.devices[device])
    } catch {
      core?.fleet?.failed(device, error)
    }
  }

  /// Unregisters all devices, and answers how many may still be registered.
  package func unregister() async -> Int {
    guard let fleet = core?.fleet else { return 0 }
    fleet.unregister()
    var last = (gone: 0, at: SteadyClock.milliseconds())
    while fleet.counts.unregistered + fleet.counts.refused < plan.devices.count,
      SteadyClock.milliseconds() - last.at < Self.progressMilliseconds
    {
      await loop.sleep(milliseconds: Self.lookMilliseconds)
      if fleet.counts.unregistered > last.gone { last = (fleet.counts.unregistered, SteadyClock.milliseconds()) }
    }
    return plan.devices.count - fleet.counts.unregistered
  }

  /// Cuts what is left of the connections.
  package func close() {
    core?.close()
    core = nil
  }

  // MARK: The requests

  /// Publishes the requests, follows them until each is decided, and answers with all numbers.
  ///
  /// - Parameters:
  ///   - requests: other requests than the plan's, for a step of several.
  ///   - time: when the schedule begins, in milliseconds since 1970; nil for at once. All shares of a run need the same.
  /// - Throws: ``LoadRefusal/late(milliseconds:)`` if the time has passed, or Kafka's error.
  package func publish(_ requests: LoadPlan.Requests? = nil, at time: Int64? = nil) async throws -> LoadResult {
    guard let core else { preconditionFailure("the devices are connected before requests are published") }
    let requests = requests ?? plan.requests
    let topic = place.topics.requests
    let batches = try await Admin.with(place.kafka) { try await $0.writeLimits(of: [topic]) }
    // So each share knows the requests of all others.
    let series = share.count > 1 ? StableHash.hash("\(run) \(time ?? 0)") : .random(in: 1...UInt64.max)
    let names = share.names(run: run, series: series)
    if let time { try await waitUntilNear(time, core) }
    let events = LoadEvents(on: loop, names, place, owner: core)
    let watch = LoadWatch(place, LoadMeasures(durationMilliseconds: requests.durationMilliseconds))
    do {
      try await events.begin()
      let start = time.map { LoadStart(at: $0) }
      await watch.begin(startingAt: start?.steady)
      if let time, !isStopped { try Self.checkAhead(time, now: WallClock.milliseconds()) }
      try core.begin(requests, names, batchBytes: batches.batchBytes(of: topic), at: start)
    } catch {
      await events.close()
      await watch.close()
      throw error
    }
    core.isStopped = isStopped
    let watching = Task { await follow(watch, core) }
    await follow(core)
    core.finish()
    var result = core.result
    watching.cancel()
    await watching.value
    result.servers = await watch.look()
    await watch.close()
    await core.closePublisher()
    await events.close()
    if let failure = core.failure, result.totals.published == 0 { throw failure }
    return result
  }

  private func waitUntilNear(_ time: Int64, _ core: LoadCore) async throws {
    if let difference = core.fleet?.clockOffset { try Self.checkClock(difference) }
    while time - WallClock.milliseconds() > Self.leadMilliseconds, !isStopped { await loop.sleep(milliseconds: Self.lookMilliseconds) }
    if !isStopped { try Self.checkAhead(time, now: WallClock.milliseconds()) }
  }

  /// Checks that a start lies ahead.
  static func checkAhead(_ time: Int64, now: Int64) throws(LoadRefusal) {
    if now > time { throw .late(milliseconds: now - time) }
  }

  /// Checks the difference of the cluster's clock to that of this machine. All shares begin by clocks that are near the cluster's.
  static func checkClock(_ difference: Int64) throws(LoadRefusal) {
    guard (-clockMilliseconds...clockMilliseconds).contains(difference) else { throw .clockDiffers(milliseconds: difference) }
  }

  private func follow(_ core: LoadCore) async {
    var swept: Int64 = 0
    while !core.isStopped, core.now < core.end, !core.isSettled {
      await loop.sleep(milliseconds: Self.lookMilliseconds)
      guard core.now - swept >= Self.sweepNanoseconds else { continue }
      swept = core.now
      core.sweep()
    }
  }

  /// Takes the servers' numbers once an interval, until it is cancelled.
  private func follow(_ watch: LoadWatch, _ core: LoadCore) async {
    while !Task.isCancelled {
      await loop.sleep(milliseconds: core.intervalMilliseconds)
      if !Task.isCancelled { core.servers = await watch.look() }
    }
  }
}
