import EventLoop
import HTTP
import Notifications
import Store

/// Asks the workers and Redis for their numbers while a run goes on. An actor on a loop of its own, so that it delays no device.
actor LoadWatch: LoopActor {
  nonisolated let loop = EventLoop(name: "load-watch")
  private let place: LoadPlace
  private var servers: LoadServers
  /// The steady clock's nanoseconds at the start of the run; nil before it.
  private var start: Int64?
  private var shards: Shards?
  private var clients: [String: HTTPClient] = [:]
  /// The workers' names, and the URLs of their admin servers.
  private var admins: [(name: Name, url: String)]
  private var listedAt: Int64?

  /// How long a server may take for an answer, in milliseconds.
  private static let answerMilliseconds = 3_000
  /// The most bytes of a worker's metrics.
  private static let maximumBytes = 8 << 20
  /// The most workers that are asked.
  private static let maximumWorkers = 100

  init(_ place: LoadPlace, _ measures: LoadMeasures) {
    self.place = place
    admins = place.admins.map { (Name($0), $0) }
    servers = LoadServers(startedAt: WallClock.milliseconds(), measures)
  }

  /// Connects, and takes the numbers that the run begins with.
  ///
  /// - Parameter start: when the run starts, in the steady clock's nanoseconds; nil if it starts when this returns.
  func begin(startingAt start: Int64?) async {
    if let store = place.store {
      var store = store
      store.callDeadlineMilliseconds = Self.answerMilliseconds
      let shards = Shards(on: loop, store, clientName: "carillon-load")
      self.shards = shards
      shards.start()
      do { try await shards.waitUntilUp(withinMilliseconds: Self.answerMilliseconds) } catch {
        servers.missed(Name(LoadServers.redisGroup), "\(error)")
      }
    }
    await read()
    self.start = start ?? SteadyClock.nanoseconds()
  }

  /// Reads all numbers, and answers the sums so far. Servers that do not answer within seconds are left out.
  func look() async -> LoadServers {
    await read()
    return servers
  }

  /// Closes the connections, and ends the loop.
  nonisolated func close() async {
    await disconnect()
    // An actor cannot continue after its loop has ended.
    await loop.close()
  }

  private func disconnect() {
    shards?.close()
    shards = nil
    for client in clients.values { client.close() }
    clients = [:]
  }

  // MARK: Reading

  private var now: Int64 { start.map { SteadyClock.nanoseconds() - $0 } ?? 0 }

  private func read() async {
    servers.take(LoadCore.processorSeconds(), of: LoadServers.ownGroup, at: now)
    if let shards {
      do throws(StoreError) {
        if let seconds = try await shards.processorSeconds() { servers.take(seconds, of: LoadServers.redisGroup, at: now) }
        try await listWorkers(shards)
      } catch {
        servers.missed(Name(LoadServers.redisGroup), "\(error)")
      }
    }
    // One that stands still must not delay the others' numbers.
    let asking = admins.map { admin in Task { await ask(admin.name, at: admin.url) } }
    for task in asking { await task.value }
  }

  private func listWorkers(_ shards: Shards) async throws(StoreError) {
    let now = SteadyClock.milliseconds()
    if let listedAt, now - listedAt < Int64(Workers.intervalMilliseconds) { return }
    guard place.admins.isEmpty else { return }
    let listings = try await Workers(shards).list()
    listedAt = now
    let found = listings.filter { !$0.isSilent }.compactMap { listing in
      listing.report?.admin.map { (name: listing.name, url: $0) }
    }
    admins = Array(found.prefix(Self.maximumWorkers))
    if found.count > admins.count { servers.missed("\(found.count - admins.count) workers", "a run asks at most \(admins.count)") }
    let urls = Set(admins.map(\.url))
    for (url, client) in clients where !urls.contains(url) {
      client.close()
      clients[url] = nil
    }
  }

  private func ask(_ name: Name, at url: String) async {
    do {
      let client = try client(for: url)
      var request = HTTPClientRequest(.get, try HTTPURL(url).root + "metrics")
      request.timeoutMilliseconds = Self.answerMilliseconds
      request.maximumBodyBytes = Self.maximumBytes
      let response = try await client.send(request)
      guard response.status == .ok, let reading = response.body.withUnsafeBytes({ WorkerReading(metrics: $0) }) else {
        return servers.missed(name, "\(url) does not answer with the metrics of a worker (\(response.status))")
      }
      servers.take(reading, of: name, at: now)
    } catch {
      servers.missed(name, "\(error)")
    }
  }

  private func client(for url: String) throws -> HTTPClient {
    if let client = clients[url] { return client }
    var configuration = HTTPClientConfiguration(hosts: try HTTPHostRule(["\(try HTTPURL(url).address)"]))
    configuration.schemes = [.http, .https]
    // Workers lie where the cluster lies: mostly at private addresses.
    configuration.addresses = HTTPAddressRule(admitting: [try IPNetwork("0.0.0.0/0"), try IPNetwork("::/0")])
    let client = HTTPClient(on: loop, configuration: configuration)
    clients[url] = client
    return client
  }
}

extension HTTPURL {
  /// The URL of the server, with a slash at the end.
  fileprivate var root: String { String(description.dropLast(target.utf8.count)) + "/" }
}
