import EventLoop
import Glibc
import Kafka
import TestSupport
import Testing

@Suite struct EmbeddedBrokerTests {
  @Test(.onlyInAll("it is about time: how long a call takes")) func aCallThatFollowsAnotherIsAnsweredAtOnce() async throws {
    let broker = try EmbeddedBroker()
    var slow = 0
    for number in 0..<300 {
      let start = Moment()
      try broker.createTopic("topic-\(number)", partitions: 1)
      // Who has lost his wake-up waits for a second.
      if !start.isWithin(.milliseconds(900)) { slow += 1 }
    }
    #expect(slow < 10, "only a machine that stands still makes some of them slow")
    await broker.close()
  }

  /// A client that acknowledges an answer late, as kernels do, would wait 40 ms for the next one.
  @Test func `its answers do not wait for the acknowledgements of earlier ones`() async throws {
    let broker = try EmbeddedBroker(topics: [("orders", 1)])
    let port = try #require(broker.bootstrapServers.first?.split(separator: ":").last.flatMap { UInt16($0) })
    for _ in 0..<2 {
      let kafka = try KafkaFixture(at: broker.configuration)
      _ = try await kafka.admin.describeCluster()
      let connections = Self.sockets(of: port)
      #expect(!connections.isEmpty && connections.allSatisfy { $0.sendsAtOnce })
      await kafka.close()
      // A broker that was down has another listener.
      try broker.takeDown()
      try broker.bringUp()
    }
    await broker.close()
  }

  /// The connections and listeners of this process at a local port.
  private static func sockets(of port: UInt16) -> [(descriptor: Int32, sendsAtOnce: Bool)] {
    (3..<4096 as Range<Int32>).compactMap { descriptor in
      var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
      let status = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
      }
      guard status == 0, address.sin_family == sa_family_t(AF_INET), UInt16(bigEndian: address.sin_port) == port else { return nil }
      var (value, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
      getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &value, &size)
      return (descriptor, value == 1)
    }
  }

  @Test func `a consumer without its settings warns of nothing`() async throws {
    let broker = try EmbeddedBroker(topics: [("orders", 1)])
    let kafka = try KafkaFixture(at: broker.configuration)
    try await kafka.publish([TestRecord("one")], to: "orders")
    let lane = ConsumerLane()
    try await lane.open(KafkaConfiguration(bootstrapServers: broker.bootstrapServers), .init(group: "readers"))
    try await lane.subscribe("orders")
    await eventually("it gets the record") { await lane.count == 1 }
    #expect(await lane.lines.filter { $0.severity <= 4 }.isEmpty)
    await lane.close()
    await kafka.close()
    await broker.close()
  }

  /// Without that librdkafka aborts the process, for the mock cluster cannot bind its port again.
  @Test func aBrokerMayGoDownWhileChildrenBegin() async throws {
    let broker = try EmbeddedBroker()
    let loops = [EventLoop(name: "children-1"), EventLoop(name: "children-2")]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for loop in loops {
        group.addTask {
          while !Task.isCancelled {
            let (ended, continuation) = AsyncStream.makeStream(of: ChildExit.self)
            try await loop.run { _ = try ChildProcess.spawn(on: loop, executable: "true", arguments: []) { continuation.yield($0) } }
            for await exit in ended {
              #expect(exit == .exited(0))
              break
            }
          }
        }
      }
      for _ in 0..<(isComplete ? 40 : 8) {
        try broker.takeDown()
        try broker.bringUp()
      }
      group.cancelAll()
    }
    await broker.close()
    for loop in loops { await loop.close() }
  }

  @Test func clientsOfAChosenPortFindTheBroker() async throws {
    let loop = EventLoop(name: "port")
    let broker = try EmbeddedBroker(topics: [("orders", 2)])
    let free = try await freePort(on: loop)
    let port = try EmbeddedBrokerPort(free, of: try #require(broker.bootstrapServers.first), on: loop)
    try await port.listen()
    let configuration = KafkaConfiguration(bootstrapServers: ["\(port.address)"], properties: EmbeddedBroker.clientProperties)
    let kafka = try KafkaFixture(at: configuration)
    #expect(try await kafka.admin.describeCluster().brokers == [1: try #require(broker.bootstrapServers.first)])

    // Larger than what is read at once.
    let text = String(repeating: "127.0.0.1", count: 30_000)
    let records = (0..<20).map { TestRecord(key: "\($0)", "\($0) \(text)") }
    try await kafka.publish(records, to: "orders")
    #expect(try await Set(kafka.records(of: "orders", count: 20).map(\.value)) == Set(records.map(\.value)))

    let lane = ConsumerLane()
    try await lane.open(configuration, .init(group: "readers"))
    try await lane.subscribe("orders")
    await eventually("a member of a group gets all records") { await lane.count == 20 }
    await lane.close()
    await kafka.close()
    await port.close()
    await broker.close()
    await loop.close()
  }
}
