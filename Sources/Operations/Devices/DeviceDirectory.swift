package import EventLoop
package import Notifications
package import Store

/// The devices to list.
package enum DeviceQuestion: Sendable {
  /// A device.
  case device(DeviceToken)
  /// All devices of a person, for one application or for all.
  case person(Name, application: Name?)
}

/// A device with its mailbox and its connection.
package struct DeviceListing: Sendable {
  /// Where a device is connected.
  package enum Connection: Sendable, Equatable {
    /// It is not connected.
    case none
    /// One of these lanes, which read the partition of `deliveries` that the session named.
    case lanes([Name], partition: Int32)
    /// No living lane reads that partition: the session's worker was killed or has just ended.
    case gone(partition: Int32)
  }

  /// The device as Redis has it.
  package var device: RegisteredDevices.Device
  /// Where it is connected.
  package var connection: Connection
  /// The entries that its mailbox keeps, by the workers' reports; nil if none reports it, or if they differ.
  package var bound: Int?

  /// Entries beyond the limit, which are evicted soon; nil if unknown.
  package var overBound: Int? {
    guard let bound, let entries = device.mailbox?.entries else { return nil }
    return max(0, entries - bound)
  }
}

/// The end of a listing.
package struct DeviceListingEnd: Sendable, Equatable {
  /// The number of listed devices.
  package var count = 0
  /// Whether there are more devices, beyond the limit.
  package var hasMore = false
  /// Members of a person's sets that belong to another person by now.
  package var others = 0
  /// Whether a rebuild is running, or Redis has lost the bucket.
  package var isIncomplete = false
}

/// Lists registered devices, as Redis has them: an actor on a loop. It reads page after page, and writes nothing.
package actor DeviceDirectory: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let store: StoreConfiguration
  private let laneMilliseconds: Int64
  private let boundKeys: BoundKeys

  /// The keys of a scan, and the pause after each in milliseconds. Redis answers no other client during a scan.
  private static let (scannedKeys, pauseMilliseconds) = (500, 5)
  /// How often the progress of a scan is reported, in milliseconds.
  private static let progressMilliseconds: Int64 = 1_000

  /// The settings in the workers' reports for the entries that a mailbox keeps.
  package typealias BoundKeys = (away: String, connected: String)

  /// Makes a directory of a Redis.
  ///
  /// - Parameters:
  ///   - laneMilliseconds: how long a silent fan-out lane counts as alive.
  ///   - boundKeys: those of a device that is away, and of a connected one.
  package init(on loop: EventLoop, _ store: StoreConfiguration, laneMilliseconds: Int, boundKeys: BoundKeys) {
    (self.loop, self.store, self.boundKeys) = (loop, store, boundKeys)
    self.laneMilliseconds = Int64(laneMilliseconds)
  }

  /// Lists the devices, at most `limit`.
  ///
  /// - Parameter onProgress: called once a second with the number of scanned keys. Only a person without an application needs a scan.
  /// - Throws: ``OtherBuckets`` if the keys are in other buckets; `StoreError` or `RedisError` if Redis does not answer.
  package func list(
    _ question: DeviceQuestion, limit: Int, onDevice: @escaping @Sendable (DeviceListing) -> Void,
    onProgress: @Sendable (_ looked: Int64, _ of: Int64) -> Void
  ) async throws -> DeviceListingEnd {
    try await Shards.with(on: loop, store, clientName: "carillon-devices") { shards in
      let identity = try await ClusterIdentity.standing(in: shards)
      if let buckets = identity?.buckets, buckets != store.buckets { throw OtherBuckets(found: buckets) }
      let devices = RegisteredDevices(shards)
      let reading = Reading(devices, try await Surroundings(shards, laneMilliseconds, boundKeys), limit: limit, onDevice)
      let asked: Name
      switch question {
      case .device(let token):
        asked = Name(token.text)
        try await reading.tell(token.text) { $0.isKnown }
      case .person(let user, let application?):
        asked = user
        try await reading.tell(all: user, application)
      case .person(let user, nil):
        asked = user
        try await tell(all: user, Population(shards), devices, reading, onProgress)
      }
      // Checked afterwards, since a rebuild may have begun meanwhile.
      if try await devices.isBeingRebuilt() { reading.end.isIncomplete = true }
      if try await devices.hasLost(bucketOf: asked) { reading.end.isIncomplete = true }
      return reading.end
    }
  }

  /// Lists a person's devices for all applications. It scans for their sets, since no key lists a person's applications.
  private func tell(
    all user: Name, _ population: Population, _ devices: RegisteredDevices, _ reading: Reading,
    _ onProgress: (_ looked: Int64, _ of: Int64) -> Void
  ) async throws {
    let total = try await population.keyCount()
    var told: Set<Name> = []
    var (place, looked) = (UInt64(0), Int64(0))
    var reported = SteadyClock.milliseconds()
    repeat {
      let (next, found) = try await devices.applications(of: user, from: place, keys: Self.scannedKeys)
      // A table that is being resized may return a key twice.
      for application in found.sorted() where told.insert(application).inserted {
        try await reading.tell(all: user, application)
      }
      (place, looked) = (next, looked + Int64(Self.scannedKeys))
      if SteadyClock.milliseconds() - reported >= Self.progressMilliseconds {
        onProgress(min(looked, total), total)
        reported = SteadyClock.milliseconds()
      }
      await loop.sleep(milliseconds: Self.pauseMilliseconds)
    } while place != 0 && !reading.end.hasMore
  }

  /// The lanes, and the entries that a mailbox keeps.
  private struct Surroundings {
    var lanes: [Int32: [Name]] = [:]
    var bounds: (away: Int?, connected: Int?)

    init(_ shards: Shards, _ laneMilliseconds: Int64, _ boundKeys: BoundKeys) async throws(StoreError) {
      for lane in try await Lanes(shards).list() where lane.silentMilliseconds < laneMilliseconds {
        lanes[lane.partition, default: []].append(lane.name)
      }
      let reports = try await Workers(shards).list().filter { !$0.isSilent }.compactMap(\.report)
      func agreed(_ key: String) -> Int? {
        let values = Set(reports.compactMap { $0.settings[key] })
        return values.count == 1 ? values.first.flatMap { Int($0) } : nil
      }
      bounds = (agreed(boundKeys.away), agreed(boundKeys.connected))
    }
  }

  /// One listing.
  private final class Reading {
    var end = DeviceListingEnd()
    private let devices: RegisteredDevices
    private let surroundings: Surroundings
    private let limit: Int
    private let onDevice: (DeviceListing) -> Void

    init(_ devices: RegisteredDevices, _ surroundings: Surroundings, limit: Int, _ onDevice: @escaping (DeviceListing) -> Void) {
      (self.devices, self.surroundings, self.limit, self.onDevice) = (devices, surroundings, limit, onDevice)
    }

    /// Lists a person's devices for an application, page after page.
    func tell(all user: Name, _ application: Name) async throws(StoreError) {
      var last: String?
      while !end.hasMore {
        let page = try await devices.page(of: user, application, after: last)
        for member in page where !end.hasMore {
          guard DeviceToken(member)?.text == member else {
            end.others += 1
            continue
          }
          let isOfPerson = { (device: RegisteredDevices.Device) in
            device.membership.map { $0.user == user && $0.application == application } ?? false
          }
          if try await !tell(member, where: isOfPerson) { end.others += 1 }
        }
        guard page.count == RegisteredDevices.pageSize else { return }
        last = page.last
      }
    }

    /// Lists a device if it matches; answers whether it does.
    @discardableResult
    func tell(_ token: String, where isWanted: (RegisteredDevices.Device) -> Bool) async throws(StoreError) -> Bool {
      let device = try await devices.device(token)
      guard isWanted(device) else { return false }
      guard end.count < limit else {
        end.hasMore = true
        return true
      }
      end.count += 1
      let bound = device.presence == nil ? surroundings.bounds.away : surroundings.bounds.connected
      onDevice(DeviceListing(device: device, connection: connection(of: device), bound: bound))
      return true
    }

    private func connection(of device: RegisteredDevices.Device) -> DeviceListing.Connection {
      guard let partition = device.presence?.partition else { return .none }
      return surroundings.lanes[partition].map { .lanes($0, partition: partition) } ?? .gone(partition: partition)
    }
  }
}

/// The keys of the Redis are spread over another number of buckets than given.
package struct OtherBuckets: Error, Sendable, Equatable {
  /// Their number.
  package let found: Int
}

extension RegisteredDevices.Device {
  /// Whether Redis has anything of the device.
  fileprivate var isKnown: Bool { owner != nil || registration != nil || mailbox.map { $0.entries > 0 } ?? false }
}
