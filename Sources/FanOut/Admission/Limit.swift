/// The limits of a lane, as metric labels.
enum Limit: String, CaseIterable {
  /// Connections of the lane: 503.
  case connections
  /// Descriptors of the process for devices: 503.
  case descriptors
  /// Connections of one address: 429.
  case addressConnections = "connections_of_address"
  /// Connections that begin a TLS handshake in a second: they wait in the kernel.
  case handshakes
  /// Clients with an origin that is not listed: 403.
  case origins
  /// Waiting hellos: 503, or `goaway` and 4009.
  case hellos
  /// Registrations on their way to Kafka: `goaway` and 4009.
  case registrations
  /// A session's changes on their way to Kafka, or a device's in a minute: 4012.
  case changes
  /// A connection's frames before its hello, or in a second after it: 4012.
  case frames
  /// A session's responses on their way to Kafka, or a device's in a minute: 4015.
  case responses
  /// Removals that a device's responses publish in a minute: 4015.
  case removals
  /// Kafka's queue: the lane emits the event again, or the device sends its response again.
  case events
  /// Acknowledgements on their way to Kafka: `goaway` and 4009. Their notifications stay in the mailbox.
  case acknowledgements
}

/// A limit of the lane is reached.
struct Overload: Error, CustomStringConvertible {
  let limit: Limit
  var description: String { "the lane takes no more \(limit.rawValue) now: the device reconnects later" }
}
