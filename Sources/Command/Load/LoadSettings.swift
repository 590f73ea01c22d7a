import HTTP
import Notifications
import Operations
import Worker

/// The settings of `carillon load`.
enum LoadSettings {
  // MARK: The plan, which a profile may have

  static let devices = Setting("load.devices", .integer(1...200_000), default: 100, "The number of devices.")
  static let perUser = Setting(
    "load.devices-per-user", .integer(1...LoadPlan.maximumPerUser), default: 2, "The devices of each person; at most --devices.")
  static let connectRate = Setting("load.connect-rate", .integer(1...100_000), default: 200, "New connections in a second.")
  static let churn = Setting("load.churn", .share(upTo: 60), default: 0, "The share of the devices that reconnect in a minute.")
  static let storm = Setting(
    "load.storm", .share(upTo: 1), default: 0, "The share of the devices that reconnect at once, in the middle of the run.")
  static let slow = Setting("load.slow", .share(upTo: 1), default: 0, "The share of devices that take two seconds to acknowledge.")
  static let respond = Setting("load.respond", .share(upTo: 1), default: 0, "The share of the notifications that a person opens.")
  static let deviceGroup = SettingGroup(
    "Devices", [devices, connectRate], advanced: [churn, storm, perUser, slow, respond])

  static let rate = Setting("load.rate", .integer(1...LoadCapacitySearch.maximum), default: 50, "Requests in a second.")
  static let ramp = Setting(
    "load.ramp", .duration(.zero...(.seconds(86_400))), default: .zero, "The first part of the duration, in which the rate rises from 0.")
  static let duration = Setting(
    "load.duration", .duration(.milliseconds(100)...(.seconds(7 * 86_400))), default: .seconds(20), "How long requests are due.")
  static let sizes = Setting(
    "load.sizes", .repeated(.integer(80...32_768)), default: [300], "The bytes of payloads. Each request has one of these sizes.")
  static let toUsers = Setting(
    "load.to-users", .share(upTo: 1), default: 0.5, "The share of requests for user: targets. The others are for device: targets.")
  static let collapsing = Setting("load.collapsing", .share(upTo: 1), default: 0, "The share of requests with a collapse id.")
  static let duplicate = Setting(
    "load.duplicate", .share(upTo: 1), default: 0, "The share of requests that are published twice with the same apns-id.")
  static let mutable = Setting("load.mutable", .share(upTo: 1), default: 0, "The share of requests that service extensions may change.")
  static let scheduled = Setting(
    "load.scheduled", .share(upTo: 1), default: 0, "The share of requests that wait in the cluster for --schedule-ahead.")
  static let ahead = Setting(
    "load.schedule-ahead", .duration(.milliseconds(100)...(.seconds(86_400))), default: .seconds(5),
    "How long a scheduled request waits in the cluster.")
  static let lifetime = Setting<Duration?>(
    "load.lifetime", .duration(.seconds(1)...(.seconds(30 * 86_400))), "The lifetime of a request. Absent: the longest one.")
  static let patience = Setting(
    "load.patience", .duration(.seconds(1)...(.seconds(3600))), default: .seconds(60),
    "How long a notification may take to a connected device. Then it counts as lost.")
  static let seed = Setting(
    "load.seed", .integer(0...Int(Int32.max)), default: 1, "Chooses targets, sizes and so on. Runs with one seed send the same requests.")
  static let requestGroup = SettingGroup(
    "Requests", [rate, ramp, duration, sizes, collapsing],
    advanced: [duplicate, toUsers, mutable, scheduled, ahead, lifetime, patience, seed])

  /// The groups that a profile may fill.
  static let planGroups = [deviceGroup, requestGroup]

  // MARK: The run

  static let profile = Setting<String?>(
    "load.profile", .string("smoke|mixed|storm|FILE", completion: .file),
    "A built-in profile, or a file of settings: 'rate = 500' and so on. Flags take precedence over it.")
  static let run = Setting<String?>("load.run", .runName, "The name of the run. Absent: made from the time.")
  static let fanOut = Setting<[String]?>(
    "load.fan-out", .repeated(.deviceURL),
    "Where devices connect: wss://HOST:PORT/v1/device, or ws:// without TLS. With several they are spread over all. Absent: that of a 'carillon up' on this machine."
  )
  static let authorities = Setting<String?>(
    "load.ca", .file,
    "The certificates in PEM that the cluster's certificate must have been signed by. Absent: those that this machine trusts.")
  static let keyFile = Setting<String?>(
    "load.key-file", .file, "The cluster's key, to sign the devices' credentials. Absent: the cluster takes any device.")
  static let production = Setting<String?>(
    "load.production", .string("CLUSTER-ID"),
    "The id of the Kafka cluster, to load a cluster that is not marked for load by 'topics create --for-load'.")
  static let isDryRun = Setting("load.dry-run", .boolean, default: false, "Connects nothing: prints the plan as a profile.")
  static let admins = Setting<[String]>(
    "load.workers", .repeated(.adminURL), default: [],
    "The workers' admin servers, for their stages and processor time. Absent: those that have reported themselves to Redis.")
  static let share = Setting<(number: Int, count: Int)?>(
    "load.share", .sharePlace,
    "The share of the load that this process makes, such as 2/3. All shares need one plan, seed, --run and --start; 'load sum' adds their results. Absent: all of it."
  )
  static let start = Setting<Int64?>(
    "load.start", .start, "When the requests begin. The devices must be connected by then. Absent: as soon as they are.")
  static let runGroup = SettingGroup(
    "Run", [profile, run, production, isDryRun], advanced: [share, start, fanOut, authorities, keyFile, admins])

  /// Redis is asked for the workers and for its processor time. A run needs it for nothing else.
  static let clusterGroup = SettingGroup(
    "Cluster", [ClusterSettings.kafka],
    advanced: [ClusterSettings.redis, ClusterSettings.topicPrefix] + ClusterSettings.redisFiles + [ClusterSettings.kafkaProperties])

  static let requirements = Setting<[LoadRequirement]>(
    "load.require", .repeated(.requirement), default: [],
    "A bound that the run must keep, such as p99=200ms or reach=1. Otherwise the exit code is 1.")
  static let report = Setting<String?>("load.report", .file, "Writes the report to this file, as a page with plots.")
  static let result = Setting<String?>("load.result", .file, "Writes the numbers to this file, as JSON for 'load sum'.")
  static let findsCapacity = Setting(
    "load.find-capacity", .boolean, default: false, "Finds the highest rate that keeps --p99, in steps that begin at --rate.")
  static let p99 = Setting(
    "load.p99", .duration(.milliseconds(1)...(.seconds(600))), default: .milliseconds(200), "The goal of --find-capacity, for the arrival.")
  static let step = Setting(
    "load.step", .duration(.seconds(1)...(.seconds(3600))), default: .seconds(60), "How long each step of --find-capacity takes.")
  static let resultGroup = SettingGroup("Result", [requirements, report, findsCapacity, p99], advanced: [result, step])

  /// What `load sum` writes and checks.
  static let sumGroup = SettingGroup("Result", [requirements, report, result])

  /// The requirements that do not hold.
  static func broken(_ values: SettingValues, _ result: LoadResult) -> [String] {
    values[requirements].filter { !$0.holds(in: result) }.map(\.text)
  }

  /// The share of this process, checked.
  static func share(_ values: SettingValues, of plan: LoadPlan) throws(UsageError) -> LoadShare {
    guard let place = values[share] else { return LoadShare(all: plan) }
    for (isGiven, flag, reason) in [
      (values[run] != nil, "--run", "all shares have the name of one run"),
      (values[start] != nil, "--start", "all shares begin at one time"),
      (values[result] != nil, "--result", "'load sum' adds the results of all shares"),
    ] where !isGiven {
      throw UsageError(.missing, "--share needs \(flag): \(reason)")
    }
    guard !values[findsCapacity] else {
      throw UsageError(
        .contradiction,
        "--find-capacity cannot be combined with --share: the rate of each step follows from the former one. Try rates one by one with --require p99=…"
      )
    }
    do throws(LoadPlan.Problem) { try plan.check(shares: place.count) } catch {
      throw UsageError(.contradiction, "--\(error.flag) \(error.rule)")
    }
    return plan.share(place.number, of: place.count)
  }

  /// Fills the plan from the profile, if one was given.
  static func withProfile(_ values: SettingValues) throws(UsageError) -> SettingValues {
    guard let name = values[profile] else { return values }
    var filled = values
    if let shipped = LoadProfile.shipped[name] {
      try SettingsProfile("profile \(name)", text: shipped).fill(planGroups, of: &filled)
    } else if let file = try values.file(profile, limit: 1 << 20) {
      try SettingsProfile(file).fill(planGroups, of: &filled)
    }
    return filled
  }

  /// The plan, checked.
  static func plan(_ values: SettingValues) throws(UsageError) -> LoadPlan {
    var plan = LoadPlan()
    plan.devices.count = values[devices]
    plan.devices.perUser = min(values[perUser], values[devices])
    plan.devices.connectRate = values[connectRate]
    plan.devices.churn = values[churn]
    plan.devices.storm = values[storm]
    plan.devices.slow = values[slow]
    plan.devices.responding = values[respond]
    plan.requests.rate = values[rate]
    plan.requests.rampMilliseconds = values[findsCapacity] ? 0 : values[ramp].wholeMilliseconds
    plan.requests.durationMilliseconds = values[findsCapacity] ? values[step].wholeMilliseconds : values[duration].wholeMilliseconds
    plan.requests.sizes = values[sizes]
    plan.requests.toUsers = values[toUsers]
    plan.requests.collapsing = values[collapsing]
    plan.requests.duplicate = values[duplicate]
    plan.requests.mutable = values[mutable]
    plan.requests.scheduled = values[scheduled]
    plan.requests.aheadMilliseconds = values[ahead].wholeMilliseconds
    plan.requests.lifetimeSeconds = values[lifetime].map { $0.wholeMilliseconds / 1000 }
    plan.patienceMilliseconds = values[patience].wholeMilliseconds
    plan.seed = UInt64(values[seed])
    guard !values[sizes].isEmpty else { throw UsageError(.wrongValue, "--sizes must have at least one size") }
    do throws(LoadPlan.Problem) { try plan.check() } catch {
      throw UsageError(.contradiction, "--\(error.flag) \(error.rule)")
    }
    return plan
  }
}

extension SettingKind where Value == (number: Int, count: Int) {
  /// Which share of how many, from 1 on.
  fileprivate static var sharePlace: SettingKind {
    SettingKind(
      placeholder: "K/N", allowed: "a share K of N, such as 2/3, with N at most \(LoadPlan.maximumShares)",
      read: { text in
        let numbers = text.split(separator: "/", omittingEmptySubsequences: false).map { part in
          part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(part) ?? 0 : 0
        }
        guard numbers.count == 2, (1...LoadPlan.maximumShares).contains(numbers[1]), (1...numbers[1]).contains(numbers[0]) else {
          return nil
        }
        return (numbers[0], numbers[1])
      }, write: { "\($0.number)/\($0.count)" })
  }
}

extension SettingKind where Value == Int64 {
  /// A time, in milliseconds since 1970.
  fileprivate static var start: SettingKind {
    SettingKind(
      placeholder: "TIME", allowed: "a time such as 2026-01-31T12:00:00Z", read: { Timestamp.parse($0) }, write: { Timestamp.text($0) })
  }
}

extension SettingKind where Value == Double {
  /// A share from 0 to a maximum.
  fileprivate static func share(upTo maximum: Double) -> SettingKind {
    SettingKind(
      placeholder: "SHARE", allowed: "a share from 0 to \(Int(maximum)), such as 0.25",
      read: { text in
        // `Double` also reads "nan", "inf" and hexadecimal digits.
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E }), let share = Double(text), (0...maximum).contains(share)
        else { return nil }
        return share
      }, write: { $0 == $0.rounded() ? String(Int($0)) : "\($0)" })
  }
}

extension SettingKind where Value == LoadRequirement {
  fileprivate static var requirement: SettingKind {
    SettingKind(
      placeholder: "MEASURE=BOUND,…", allowed: LoadRequirement.allowed,
      read: { text in LoadRequirement(text) { Duration(written: $0).map { Int64($0.wholeMilliseconds) * 1000 } } }, write: \.text)
  }
}

extension SettingKind where Value == String {
  /// The URL of a worker's admin server.
  fileprivate static var adminURL: SettingKind {
    SettingKind(
      placeholder: "URL", allowed: "a URL such as http://127.0.0.1:9464",
      read: { text in (try? HTTPURL(text)).flatMap { $0.scheme.isWebSocket ? nil : text } }, write: { $0 })
  }

  /// The name of a run, which is a part of names and tokens.
  static var runName: SettingKind {
    SettingKind(
      placeholder: "NAME", allowed: "1 to 40 lower-case letters, digits and hyphens",
      read: { text in
        let isOfName = { (byte: UInt8) in (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D }
        return (1...40).contains(text.utf8.count) && text.utf8.allSatisfy(isOfName) ? text : nil
      }, write: { $0 })
  }
}
