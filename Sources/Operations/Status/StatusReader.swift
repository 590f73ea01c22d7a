public import EventLoop
public import Kafka
import Notifications
public import Store
public import Worker

/// Samples the state of a cluster: an actor on a loop. Only `close` ends it.
public actor StatusReader {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let topics: Topics
  private let group: String
  private let sampleMilliseconds: Int
  private let admin: Admin
  private let lag: LagReader
  private let store: StoreConfiguration
  /// Made by the first look.
  private var shards: Shards?

  /// Questions of an earlier look that take longer. The next look waits for them instead of asking again.
  private var lagLook: Task<Known<LagReport>, Never>?
  private var settingsLook: Task<Known<TopicSettings>, Never>?
  private var applicationsLook: Task<Known<[ApplicationLedger.Entry]>, Never>?

  /// The settings of the topics, by topic.
  private struct TopicSettings {
    var differences: [String: [String]] = [:]
    var minimumInSync: [String: Int] = [:]
  }

  /// How long Kafka and Redis may take for an answer, in milliseconds.
  private static let (kafkaMilliseconds, redisMilliseconds) = (4_000, 3_000)
  /// How long all questions to Kafka may take, in milliseconds. Later answers count as unknown.
  private static let lookMilliseconds = 8_000
  /// The most commands per second that Redis executes for the survey of devices and mailboxes.
  public static let commandsPerSecond = 200
  /// The most commands of one step of it.
  private static let largestStep = max(Population.deviceCommands, Population.mailboxCommands)

  /// Makes a reader of a cluster. Its first look connects.
  ///
  /// - Parameters:
  ///   - group: the consumer group of the transform workers.
  ///   - sampleMilliseconds: the time for the survey of devices and mailboxes; 0 for none.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, group: String, _ store: StoreConfiguration, sampleMilliseconds: Int
  ) throws(KafkaError) {
    (self.loop, self.kafka, self.topics, self.group, self.sampleMilliseconds) = (loop, kafka, topics, group, sampleMilliseconds)
    admin = try Admin(kafka, timeoutMilliseconds: Int32(Self.kafkaMilliseconds))
    lag = try LagReader(
      on: loop, kafka, topics, group: group, store: nil, readsLogs: false, timeoutMilliseconds: Int32(Self.kafkaMilliseconds))
    var store = store
    store.callDeadlineMilliseconds = Self.redisMilliseconds
    self.store = store
  }

  /// Takes a sample of Kafka and Redis at the same time. What does not answer within seconds counts as away.
  public func look() async -> StatusSample {
    async let kafka = kafkaState()
    async let redis = redisState()
    let foundKafka = await kafka
    var foundRedis = await redis
    if let shards, case .found(var state) = foundRedis, let requests = foundKafka.value?.cluster.topics[topics.requests] {
      state.schedules = await found { try await ScheduleHolders(in: shards, partitions: requests.partitions.count) }
      foundRedis = .found(state)
    }
    return StatusSample(time: WallClock.milliseconds(), kafka: foundKafka, redis: foundRedis)
  }

  /// Closes the reader.
  public func close() async {
    // Both end by themselves, soon after the deadline of their look.
    _ = await lagLook?.value
    _ = await settingsLook?.value
    _ = await applicationsLook?.value
    shards?.close()
    shards = nil
    await lag.close()
    await admin.close()
  }

  // MARK: Kafka

  private func kafkaState() async -> Known<KafkaState> {
    let (end, moment) = (
      ContinuousClock.now + .milliseconds(Self.lookMilliseconds), SteadyClock.milliseconds() + Int64(Self.lookMilliseconds)
    )
    let cluster: ClusterDescription
    do throws(KafkaError) {
      cluster = try await admin.describeCluster()
    } catch {
      return .unknown("\(kafka.bootstrapServers.joined(separator: ",")): \(error.message)")
    }
    async let lag = lag(by: end, moment)
    async let settings = settings(of: cluster, by: end, moment)
    async let applications = restrictedApplications(in: cluster, by: end)
    var state = KafkaState(cluster: cluster, lag: await lag)
    state.applications = await applications
    switch await settings {
    case .found(let found): (state.differences, state.minimumInSync) = (found.differences, found.minimumInSync)
    case .unknown(let reason): state.settingsUnknown = reason
    }
    return .found(state)
  }

  /// Reads how far the group is behind.
  private func lag(by end: ContinuousClock.Instant, _ moment: Int64) async -> Known<LagReport> {
    let look = lagLook ?? Task { await lag(by: moment) }
    lagLook = look
    let found = await look.value(by: end)
    if found != nil { lagLook = nil }
    return found ?? Self.tooSlow()
  }

  private func lag(by moment: Int64) async -> Known<LagReport> {
    do throws(KafkaError) {
      var history = LagHistory(topics, group: group, laneLifetimeMilliseconds: 0)
      history.take(try await lag.sample(by: moment))
      return history.report.map { .found($0) } ?? .unknown("nothing was found")
    } catch {
      return .unknown("\(error)")
    }
  }

  /// Reads which applications are stopped or have a rate limit.
  private func restrictedApplications(in cluster: ClusterDescription, by end: ContinuousClock.Instant) async -> Known<
    [ApplicationLedger.Entry]
  > {
    guard cluster.topics[topics.applications] != nil else { return .found([]) }
    let look = applicationsLook ?? Task { await restrictedApplications() }
    applicationsLook = look
    let found = await look.value(by: end)
    if found != nil { applicationsLook = nil }
    return found ?? Self.tooSlow()
  }

  private func restrictedApplications() async -> Known<[ApplicationLedger.Entry]> {
    let ledger = ApplicationLedger(
      on: loop, kafka, topics, silenceMilliseconds: Self.lookMilliseconds, onProgress: { _ in }, onRefused: { _, _ in })
    do {
      return .found(try await ledger.read().filter { $0.stops.open != nil || $0.stops.limits.last != nil })
    } catch {
      return .unknown("\(error)")
    }
  }

  /// Reads the topics' settings.
  private func settings(
    of cluster: ClusterDescription, by end: ContinuousClock.Instant, _ moment: Int64
  ) async -> Known<TopicSettings> {
    guard !cluster.isEmbedded else { return .found(TopicSettings()) }
    let look = settingsLook ?? Task { await settings(of: topics.all.filter { cluster.topics[$0] != nil }, by: moment) }
    settingsLook = look
    let found = await look.value(by: end)
    if found != nil { settingsLook = nil }
    return found ?? Self.tooSlow()
  }

  private func settings(of names: [String], by moment: Int64) async -> Known<TopicSettings> {
    var found = TopicSettings()
    do throws(KafkaError) {
      for topic in names {
        guard SteadyClock.milliseconds() < moment else { return Self.tooSlow() }
        let settings = try await admin.settings(ofTopic: topic)
        found.differences[topic] = topics.differences(of: topic, settings: settings)
        found.minimumInSync[topic] = settings["min.insync.replicas"].flatMap { Int($0) }
      }
      return .found(found)
    } catch {
      return .unknown("\(error)")
    }
  }

  private static func tooSlow<Value>() -> Known<Value> {
    .unknown("Kafka has not told it within \(ReadableText.duration(milliseconds: Int64(lookMilliseconds)))")
  }

  // MARK: Redis

  private func redisState() async -> Known<RedisState> {
    let shards = shards ?? Shards(on: loop, store, clientName: "carillon-status")
    if self.shards == nil { shards.start() }
    self.shards = shards
    let server: ServerState
    do {
      try await shards.waitUntilUp(withinMilliseconds: Self.redisMilliseconds)
      server = try await shards.serverState()
    } catch {
      return .unknown("\(error)")
    }
    // Each part is read alone, so that a key of a wrong type or a forbidden command hides only its own part.
    var state = RedisState(
      server: server, identity: await found { try await ClusterIdentity.standing(in: shards) },
      workers: await found { try await Workers(shards).list() }, lanes: await found { try await Lanes(shards).list() }, population: nil)
    if sampleMilliseconds > 0 {
      do { state.population = try await survey(shards) } catch { state.population = .unknown("\(error)") }
    }
    return .found(state)
  }

  private func found<Value: Sendable>(_ read: () async throws -> Value) async -> Known<Value> {
    do { return .found(try await read()) } catch { return .unknown("\(error)") }
  }

  /// Reads devices and mailboxes within the rate, until all are counted or the time is over.
  private func survey(_ shards: Shards) async throws -> Known<PopulationEstimate> {
    let population = Population(shards)
    var pace = CommandPace(perSecond: Self.commandsPerSecond, largest: Self.largestStep)
    let start = SteadyClock.milliseconds()
    var survey = PopulationSurvey(
      keys: try await population.keyCount(), commands: max(10, sampleMilliseconds * Self.commandsPerSecond / 1000 - 1))
    _ = pace.wait(for: 1, at: SteadyClock.nanoseconds())
    while let step = survey.next() {
      let wait = pace.wait(for: step.commands, at: SteadyClock.nanoseconds())
      if wait > 0 { await loop.sleep(milliseconds: Int((wait + 999_999) / 1_000_000)) }
      let time = SteadyClock.milliseconds() - start
      if time >= Int64(sampleMilliseconds) { break }
      switch step {
      case .scan(let place, let count):
        let (next, keys) = try await population.scan(from: place, count: count)
        survey.take(keys, next: next)
        // On a slow machine or Redis the names alone would take all the time.
        if time >= Int64(sampleMilliseconds / 4) { survey.endScanning() }
      case .device(let token): survey.take(try await population.device(token))
      case .mailbox(let token): survey.take(try await population.mailbox(token), of: token)
      }
    }
    guard !survey.isTooShort else {
      return .unknown("nothing was read in \(ReadableText.duration(milliseconds: Int64(sampleMilliseconds))); give it longer with --sample")
    }
    return .found(survey.result)
  }
}
