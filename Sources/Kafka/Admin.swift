import CRdKafka
import Synchronization

/// Administration of a Kafka cluster for starts, tools and tests: asynchronous, from any thread.
///
/// Each call blocks a thread of its own until the answer or the timeout. Only `close` ends the client.
public final class Admin: Sendable {
  /// The longest time of a call, in milliseconds.
  public let timeoutMilliseconds: Int32
  /// The client's configuration.
  let configuration: KafkaConfiguration
  private let client: ClientHandle
  private let isClosed = Atomic<Bool>(false)
  private let ended = Latch()

  /// Makes a client. Its first call connects.
  ///
  /// - Throws: an error that names the property if the configuration is wrong.
  public init(_ configuration: KafkaConfiguration, timeoutMilliseconds: Int32 = Admin.standardMilliseconds) throws(KafkaError) {
    self.configuration = configuration
    let object = try configuration.object(defaults: ["socket.nagle.disable": "true"], forConsumer: false)
    try object.leaveOutLog()
    client = try ClientHandle(RD_KAFKA_PRODUCER, object, findsRefusals: true)
    self.timeoutMilliseconds = timeoutMilliseconds
  }

  /// The default of the longest time of a call, in milliseconds.
  public static var standardMilliseconds: Int32 { 10_000 }

  /// Runs `body` with a client, then closes the client.
  public static func with<R>(
    _ configuration: KafkaConfiguration, timeoutMilliseconds: Int32 = standardMilliseconds, isolation: isolated (any Actor)? = #isolation,
    _ body: (Admin) async throws -> R
  ) async throws -> R {
    let admin = try Admin(configuration, timeoutMilliseconds: timeoutMilliseconds)
    do {
      let result = try await body(admin)
      await admin.close()
      return result
    } catch {
      await admin.close()
      throw error
    }
  }

  /// Closes the client after its running calls.
  public func close() async {
    let wasClosed = isClosed.exchange(true, ordering: .relaxed)
    if !wasClosed { client.end(leavingGroup: false) { [ended] _ in ended.open(true) } }
    _ = await ended.wait()
  }

  /// Runs `body` on a thread where it may block.
  func call<T: Sendable>(
    _ operation: String, _ body: @escaping @Sendable (_ client: OpaquePointer) throws(KafkaError) -> T
  ) async throws(KafkaError) -> T {
    try await client.call(operation, body)
  }

  /// Runs a question on a thread where it may block. `body` may run several times, so that `close` need not wait long.
  func ask<T: Sendable>(
    _ operation: String, _ body: @escaping @Sendable (_ client: OpaquePointer, _ timeout: Int32) throws(KafkaError) -> T
  ) async throws(KafkaError) -> T {
    try await client.ask(operation, for: timeoutMilliseconds, body)
  }

  /// Sends a request of librdkafka's admin interface, waits for its event, and passes it to `take`.
  static func request<T>(
    _ client: OpaquePointer, _ kind: rd_kafka_admin_op_t, _ operation: String, _ timeout: Int32,
    send: (OpaquePointer, OpaquePointer?) -> Void, take: (OpaquePointer) throws(KafkaError) -> T
  ) throws(KafkaError) -> T {
    guard let queue = rd_kafka_queue_new(client) else { throw KafkaError(.closed, operation) }
    defer { rd_kafka_queue_destroy(queue) }
    let options = rd_kafka_AdminOptions_new(client, kind)
    defer { rd_kafka_AdminOptions_destroy(options) }
    rd_kafka_AdminOptions_set_request_timeout(options, timeout, nil, 0)
    if kind == RD_KAFKA_ADMIN_OP_CREATETOPICS { rd_kafka_AdminOptions_set_operation_timeout(options, timeout, nil, 0) }
    send(queue, options)
    guard let event = rd_kafka_queue_poll(queue, timeout + 1_000) else { throw KafkaError(.timedOut, operation) }
    defer { rd_kafka_event_destroy(event) }
    let code = rd_kafka_event_error(event)
    if code != RD_KAFKA_RESP_ERR_NO_ERROR {
      throw KafkaError(code, operation, message: rd_kafka_event_error_string(event).map { String(cString: $0) } ?? "")
    }
    return try take(event)
  }
}
