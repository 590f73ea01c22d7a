package import EventLoop
package import Kafka
import Notifications
package import Store
import Synchronization
package import Worker

/// Samples the state of a cluster, and how far it is behind: an actor on a loop. Only `close` ends it.
package actor ClusterReader: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  let kafka: KafkaConfiguration
  let topics: Topics
  let group: String
  let admin: Admin
  private let store: StoreConfiguration?
  private let sampleMilliseconds: Int
  /// A client whose ends include the records of open transactions.
  var uncommitted: Admin?
  var groupLag: GroupLag?
  /// Made by the first question to Redis.
  private var shards: Shards?

  private let lagQuestion = SlowQuestion<LagReport>()
  private let settingsQuestion = SlowQuestion<TopicSettings>()
  private let applicationsQuestion = SlowQuestion<[ApplicationEntry]>()

  /// The settings of the topics, by topic.
  private struct TopicSettings: Sendable {
    var differences: [String: [String]] = [:]
    var minimumInSync: [String: Int] = [:]
  }

  /// How long Redis may take for an answer, in milliseconds.
  private static let redisMilliseconds = 3_000
  /// How long all questions to Kafka may take, in milliseconds. Later answers count as unknown.
  private static let lookMilliseconds = 8_000
  /// The most commands per second that Redis executes for the survey of devices and mailboxes.
  package static let commandsPerSecond = 200
  /// The most commands of one step of it.
  private static let largestStep = max(Population.deviceCommands, Population.mailboxCommands)

  /// Makes a reader of a cluster. Its first sample connects.
  ///
  /// - Parameters:
  ///   - group: the consumer group of the transform workers.
  ///   - store: nil if Redis is not given.
  ///   - sampleMilliseconds: the time for the survey of devices and mailboxes; 0 for none.
  ///   - timeoutMilliseconds: how long Kafka may take for an answer.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, group: String, _ store: StoreConfiguration?,
    sampleMilliseconds: Int = 0, timeoutMilliseconds: Int32 = 4_000
  ) throws(KafkaError) {
    (self.loop, self.kafka, self.topics, self.group, self.sampleMilliseconds) = (loop, kafka, topics, group, sampleMilliseconds)
    admin = try Admin(kafka, timeoutMilliseconds: timeoutMilliseconds)
    var store = store
    store?.callDeadlineMilliseconds = Self.redisMilliseconds
    self.store = store
  }

  /// Takes a sample of Kafka and Redis at the same time. What does not answer within seconds counts as away.
  package func look() async -> StatusSample {
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
  package func close() async {
    // All end by themselves, soon after the deadline of their look.
    await lagQuestion.finish()
    await settingsQuestion.finish()
    await applicationsQuestion.finish()
    shards?.close()
    await groupLag?.close()
    await admin.close()
    await uncommitted?.close()
    (shards, groupLag, uncommitted) = (nil, nil, nil)
  }

  /// Returns Redis as soon as it answers; nil if it is not given.
  func redis() async throws -> Shards? {
    guard let store else { return nil }
    let shards = shards ?? Shards(on: loop, store, clientName: "carillon-\(loop.name)")
    if self.shards == nil { shards.start() }
    self.shards = shards
    try await shards.waitUntilUp(withinMilliseconds: Self.redisMilliseconds)
    return shards
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
    let (names, hasApplications) = (topics.all.filter { cluster.topics[$0] != nil }, cluster.topics[topics.applications] != nil)
    async let lag = lagQuestion.answer(by: end) { await self.lag(by: moment) }
    async let settings =
      cluster.isEmbedded ? .found(TopicSettings()) : settingsQuestion.answer(by: end) { await self.settings(of: names, by: moment) }
    async let applications =
      hasApplications ? applicationsQuestion.answer(by: end) { await self.restrictedApplications() } : .found([])
    var state = KafkaState(cluster: cluster, lag: await lag)
    state.applications = await applications
    switch await settings {
    case .found(let found): (state.differences, state.minimumInSync) = (found.differences, found.minimumInSync)
    case .unknown(let reason): state.settingsUnknown = reason
    }
    return .found(state)
  }

  /// Reads how far the group is behind.
  private func lag(by moment: Int64) async -> Known<LagReport> {
    do throws(KafkaError) {
      var history = LagHistory(topics, group: group, laneLifetimeMilliseconds: 0)
      history.take(try await sample(by: moment, ofGroupOnly: true))
      return history.report.map { .found($0) } ?? .unknown("nothing was found")
    } catch {
      return .unknown("\(error)")
    }
  }

  /// Reads which applications are stopped or have a rate limit.
  private func restrictedApplications() async -> Known<[ApplicationEntry]> {
    let tool = ClusterTool(on: loop, kafka, RequestRules(topics: topics), silenceMilliseconds: Self.lookMilliseconds)
    return await found { try await tool.applications().filter { $0.stops.open != nil || $0.stops.limits.last != nil } }
  }

  /// Reads the topics' settings.
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

  fileprivate static func tooSlow<Value>() -> Known<Value> {
    .unknown("Kafka has not told it within \(ReadableText.duration(milliseconds: Int64(lookMilliseconds)))")
  }

  // MARK: Redis

  private func redisState() async -> Known<RedisState> {
    let (shards, server): (Shards, ServerState)
    do {
      guard let redis = try await redis() else { return .unknown("it is not given") }
      (shards, server) = (redis, try await redis.serverState())
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

/// A question that may take longer than a look. The next look waits for its answer instead of asking again.
private final class SlowQuestion<Value: Sendable>: Sendable {
  private let asked = Mutex<Task<Known<Value>, Never>?>(nil)

  /// The answer; unknown if it takes too long.
  func answer(by end: ContinuousClock.Instant, _ ask: @escaping @Sendable () async -> Known<Value>) async -> Known<Value> {
    let task = asked.withLock { asked in
      let task = asked ?? Task { await ask() }
      asked = task
      return task
    }
    guard let found = await task.value(by: end) else { return ClusterReader.tooSlow() }
    asked.withLock { $0 = nil }
    return found
  }

  /// Waits for an answer that came too late.
  func finish() async { _ = await asked.withLock { $0 }?.value }
}
