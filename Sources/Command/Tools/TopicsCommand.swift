import EventLoop
import JSON
import Kafka
import Worker

/// `carillon topics create`.
enum TopicsCommand {
  static let partitions = Setting(
    "topics.partitions", .integer(1...10_000), default: 12,
    "Partitions of each topic, except those of the applications and their categories, which have one. It is the maximum number of lanes of one role that can share the work. Never add partitions to an existing topic: keys would move."
  )
  static let replication = Setting<Int?>(
    "topics.replication", .integer(1...32), "Copies of each partition. Absent: the broker's default. Use 3 if nothing may be lost.")
  static let timeout = Setting(
    "topics.timeout", .duration(.seconds(1)...(.seconds(600))), default: .seconds(30), "How long Kafka may take to answer.")

  static let isDryRun = Setting(
    "topics.dry-run", flag: "dry-run", .boolean, default: false,
    "Creates nothing: shows which topics would be created, and how existing ones differ.")

  static let isForLoad = Setting(
    "topics.for-load", .boolean, default: false,
    "Marks the cluster as one for load, by a further topic that stays empty: 'carillon load' then needs no --production.")

  static let create = Command(
    "topics create", "creates the cluster's topics, or says how existing ones differ",
    discussion:
      "Existing topics are not changed, but compared with the wanted settings. The exit code is 1 if one has another number of partitions, or a setting that breaks a guarantee.",
    groups: [
      ClusterSettings.kafkaGroup, SettingGroup("Topics", [isDryRun, isForLoad, partitions, replication, timeout]), AnswerSettings.group,
    ],
    examples: [
      Example("topics create --kafka broker:9092 --partitions 48 --replication 3", "a cluster for production"),
      Example("topics create --kafka broker:9092 --partitions 48 --replication 3 --dry-run", "the same as a check: creates nothing"),
    ]
  ) { values in
    let kafka = try ClusterSettings.kafka(values, client: "carillon-topics")
    let topics = ClusterSettings.topics(values)
    let wanted = (topics.all + (values[isForLoad] ? [topics.load] : [])).map {
      TopicSpecification(
        $0, partitions: Int32(topics.partitions(of: $0, most: values[partitions])), replication: Int32(values[replication] ?? -1),
        settings: topics.configuration(of: $0))
    }
    let milliseconds = values[timeout].wholeMilliseconds
    let states = try await Admin.with(kafka, timeoutMilliseconds: Int32(milliseconds)) { admin in
      try await TopicState.ensure(wanted, of: topics, admin, kafka, isDryRun: values[isDryRun], withinMilliseconds: milliseconds)
    }
    let width = states.map(\.name.count).max() ?? 0
    for state in states { values[AnswerSettings.json] ? state.writeJSON() : state.writeText(width: width) }
    if !values[AnswerSettings.json], states.contains(where: { !$0.differences.isEmpty }) {
      StandardError.line("some topics differ from the wanted settings; they were not changed")
    }
    return states.allSatisfy { $0.differences.isEmpty } ? .done : .answerIsNo
  }
}

/// A topic after `topics create`, and its differences from what is wanted.
struct TopicState: Sendable {
  /// Whether it existed.
  enum Existence: Sendable {
    case existed, created
    /// It is missing, and the dry run did not create it.
    case missing
  }

  let name: String
  let existence: Existence
  let partitions: Int
  let replicas: Int
  let differences: [String]

  /// Creates missing topics, unless it is a dry run, and compares existing ones.
  static func ensure(
    _ wanted: [TopicSpecification], of topics: Topics, _ admin: Admin, _ kafka: KafkaConfiguration, isDryRun: Bool,
    withinMilliseconds milliseconds: Int
  ) async throws -> [TopicState] {
    let end = SteadyClock.milliseconds() + Int64(milliseconds)
    let before: [String: TopicDescription]
    do throws(KafkaError) { before = try await admin.describeCluster().topics } catch { throw kafka.failure(error) }
    let now: [String: TopicDescription]
    do throws(KafkaError) { now = isDryRun ? before : try await admin.ensureTopics(wanted) } catch { throw kafka.failure(error) }
    var states: [TopicState] = []
    let isEmbedded = try await admin.isEmbeddedBroker()
    for topic in wanted {
      let found = now[topic.name]
      // The embedded broker cannot report a topic's settings.
      let settings = isEmbedded || found == nil ? nil : try await Self.settings(of: topic.name, admin, until: end)
      states.append(
        TopicState(
          name: topic.name, existence: found == nil ? .missing : before[topic.name] == nil ? .created : .existed,
          partitions: found?.partitions.count ?? Int(topic.partitions),
          replicas: found?.partitions.map(\.replicas).min() ?? max(0, Int(topic.replication)),
          differences: found.map { differences(topic, topics, $0, settings) } ?? []))
    }
    return states
  }

  /// Reads a topic's settings. Not every broker knows a new topic at once.
  private static func settings(of topic: String, _ admin: Admin, until end: Int64) async throws -> [String: String] {
    while true {
      do throws(KafkaError) {
        return try await admin.settings(ofTopic: topic)
      } catch {
        guard error.code == .unknownTopicOrPartition, SteadyClock.milliseconds() < end else { throw error }
      }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  private static func differences(
    _ wanted: TopicSpecification, _ topics: Topics, _ found: TopicDescription, _ settings: [String: String]?
  ) -> [String] {
    var differences: [String] = []
    let partitions = found.partitions.count
    // What a topic of one partition has beyond the one is no harm.
    let isEnough = topics.hasOnePartition(wanted.name) ? partitions > 0 : partitions == Int(wanted.partitions)
    if !isEnough { differences.append("has \(TerminalText.count(partitions, "partition")), not \(wanted.partitions)") }
    let replicas = found.partitions.map(\.replicas).min() ?? 0
    if wanted.replication > 0, replicas != Int(wanted.replication) {
      differences.append("has \(replicas) copies of a partition, not \(wanted.replication)")
    }
    return differences + (settings.map { topics.differences(of: wanted.name, settings: $0) } ?? [])
  }

  func writeText(width: Int) {
    let name = name + String(repeating: " ", count: max(0, width - name.count))
    let facts = TerminalText.count(partitions, "partition") + (replicas > 0 ? ", \(replicas) \(replicas == 1 ? "copy" : "copies")" : "")
    let word =
      switch existence {
      case .existed: "exists "
      case .created: "created"
      case .missing: "would be created"
      }
    StandardOutput.line("\(word)  \(name)  \(facts)")
    for difference in differences { StandardOutput.line("         \(difference)") }
  }

  func writeJSON() {
    StandardOutput.json(
      JSONValue.object([
        "topic": name, "created": existence == .created, "missing": existence == .missing, "partitions": partitions,
        "replication": replicas, "differences": differences,
      ]).text)
  }
}
