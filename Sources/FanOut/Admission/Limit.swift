/// The lane's bounds that turn something away, as its metric names them.
enum Limit: String, CaseIterable {
  /// Connections of the lane: 503.
  case connections
  /// Descriptors that the process has for devices: 503.
  case descriptors
  /// Connections of one address: 429.
  case addressConnections = "connections_of_address"
  /// Clients that name an origin that is not listed: 403.
  case origins
  /// Hellos that wait: 503, or `goaway` and 4009.
  case hellos
  /// Registrations that wait for Kafka: `goaway` and 4009.
  case registrations
  /// A session's changes that wait for Kafka: 4012.
  case changes
  /// A connection's frames before its hello, or in a second after it: 4012.
  case frames
  /// A session's responses that wait for Kafka: 4015.
  case responses
  /// Kafka's queue: the event is emitted again, or the device sends its response again.
  case events
  /// Acknowledgements that wait for Kafka: `goaway` and 4009; what they were for stays in the mailbox.
  case acknowledgements
}

/// More asks for something than the lane has room for.
struct Overload: Error, CustomStringConvertible {
  let limit: Limit
  /// Later there is room.
  var isRetriable: Bool { true }
  var description: String { "the lane has no room for more \(limit.rawValue) now: the device is told to reconnect later" }
}
