import Cryptography
import EventLoop
import FanOut
import Kafka
import Notifications
import Operations
import Store
import Worker

/// `carillon load`.
enum LoadCommand {
  static let command = Command(
    "load", "loads a cluster, measures it, and checks its promises",
    discussion:
      "Connects devices, publishes requests when they are due, and follows each to its devices and into the events. Latencies count from the due time, so a stall counts for all requests that it delays. A notification that is lost, repeated, stale, late or out of order is printed at once with its apns-id for 'explain'. The exit code is 1 if a promise was broken, if a requirement does not hold, or if less than 99 % of the schedule was kept. The cluster must be marked for load: by 'topics create --for-load', as in 'carillon up', or by --production. At the end the devices are unregistered.",
    groups: LoadSettings.planGroups + [LoadSettings.runGroup, LoadSettings.resultGroup, AnswerSettings.group, LoadSettings.clusterGroup],
    examples: [
      Example("load --profile smoke", "some seconds, on the 'carillon up' of this machine"),
      Example("load --profile mixed --rate 800 --require p99=200ms,reach=1 --report load.html", "for CI, with a page of plots"),
      Example("load --devices 2000 --find-capacity --p99 200ms", "the highest rate with most notifications within 200 ms"),
      Example(
        "load --share 1/3 --run big --start 2026-11-23T15:00:00Z --result 1.json", "a third of the load; 'load sum' adds all shares"),
    ]
  ) { try await run($0) }

  private static func run(_ given: SettingValues) async throws -> ExitCode {
    let values = try LoadSettings.withProfile(given)
    let plan = try LoadSettings.plan(values)
    let share = try LoadSettings.share(values, of: plan)
    if values[LoadSettings.isDryRun] {
      StandardOutput.write(SettingsProfile.text(of: LoadSettings.planGroups, in: values))
      return .done
    }
    if let start = values[LoadSettings.start], start <= WallClock.milliseconds() {
      let name = values.name(of: LoadSettings.start)
      throw UsageError(.wrongValue, "\(name): \(Timestamp.text(start)) has passed by the clock of this machine")
    }
    let place = try placeWithServers(values, share)
    let files = try LoadFiles(values)
    try await checking(place) { try await place.checkMark(production: values[LoadSettings.production]) }
    let name = values[LoadSettings.run] ?? name(at: WallClock.milliseconds())
    let loop = EventLoop(name: "load")
    let registered = try await checking(place) {
      try await ClusterTool(on: loop, place.kafka, RequestRules(topics: place.topics)).devices(of: LoadNames(run: name, series: 0))
    }
    // The devices of other shares may be there already.
    let own = share.count == 1 ? registered : registered.filter(share.devices.contains)
    guard own.isEmpty else { throw LoadRefusal.runExists(name, devices: own.count).failure(place) }
    let code = try await LoadSession(
      values: values, share: share, name: name, place: place, notes: LoadNotes(values), files: files, loop: loop
    ).run()
    await loop.close()
    return code
  }

  private static func placeWithServers(_ values: SettingValues, _ share: LoadShare) throws -> LoadPlace {
    let client = "carillon-load"
    var place = try place(values, client: client)
    // In a sum the numbers of the servers must count once.
    guard share.number == 1 else { return place }
    let redis = try ClusterSettings.redisIfKnown(values, client: client)
    (place.admins, place.store) = (values[LoadSettings.admins], redis.map { StoreConfiguration($0) })
    return place
  }

  /// Where to publish and where devices connect, by the settings or by a running `carillon up`.
  static func place(_ values: SettingValues, client: String) throws -> LoadPlace {
    let kafka = try ClusterSettings.kafka(values, client: client)
    let running = values[ClusterSettings.kafka] == nil ? RunningCluster.find() : nil
    guard let urls = values[LoadSettings.fanOut] ?? running.map({ [$0.devices] }), !urls.isEmpty else {
      throw UsageError(.missing, "no address for devices: give --fan-out ws://HOST:PORT\(DeviceProtocol.path)")
    }
    var place = LoadPlace(kafka: kafka, topics: ClusterSettings.topics(values), urls: urls)
    place.authorities = try values.file(LoadSettings.authorities, limit: 1 << 20)?.bytes
    if let key = try values.file(LoadSettings.keyFile, limit: SecretFile.fileBytes).map({ try SecretFile.keys($0).signing }) {
      place.credential = { device, application, user in
        let now = WallClock.seconds()
        return Credential(device: device.text, application: application, user: user, expiration: now + 86_400).sign(
          key: key, now: now)
      }
    }
    return place
  }

  /// Makes errors of the first questions errors for the person who typed the command.
  static func checking<R>(_ place: LoadPlace, _ body: () async throws -> R) async throws -> R {
    do { return try await body() } catch let error as KafkaError {
      if error.code == .unknownTopicOrPartition {
        throw Failure(.dependencyMissing, "there are no topics at \(place.kafka.servers): 'carillon topics create --for-load' makes them")
      }
      throw place.kafka.failure(error)
    } catch let refusal as LoadRefusal {
      throw refusal.failure(place)
    }
  }

  /// A name from the time: `2026-11-23t14-41-09`.
  private static func name(at milliseconds: Int64) -> String {
    Timestamp.text(milliseconds).lowercased().prefix(19).map { $0 == ":" ? "-" : String($0) }.joined()
  }
}

extension LoadRefusal {
  /// The refusal in words for the person who typed the command.
  func failure(_ place: LoadPlace) -> Failure {
    switch self {
    case .notForLoad, .otherCluster, .runExists: Failure(.wrongUsage, sentence(place))
    case .noDevices, .late, .clockDiffers: Failure(.dependencyMissing, sentence(place))
    }
  }

  private func sentence(_ place: LoadPlace) -> String {
    switch self {
    case .notForLoad(let topic, let cluster):
      "the cluster is not marked for load, since there is no topic \(topic): 'carillon topics create --for-load' marks it. To load it all the same, give --production \(cluster)"
    case .otherCluster(let id, let given): "--production: the id of the cluster at \(place.kafka.servers) is \(id), not \(given)"
    case .runExists(let run, let devices):
      "--run: \(TerminalText.count(devices, "device")) of a run \(run) \(devices == 1 ? "is" : "are") registered: 'carillon load clean \(run)' removes them, or give another name"
    case .noDevices(let reason, let connected, let count):
      "only \(connected) of \(TerminalText.count(count, "device")) could connect to \(place.urls.joined(separator: ", ")): \(reason)"
    case .late(let milliseconds):
      "--start: the run was to begin \(ReadableText.duration(milliseconds: milliseconds)) ago, and its devices were not connected by then"
    case .clockDiffers(let milliseconds):
      "--start: the clocks of this machine and of the cluster differ by \(ReadableText.duration(milliseconds: abs(milliseconds))): set them"
    }
  }
}
