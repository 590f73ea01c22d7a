package import Notifications

/// The names of a run in the cluster: its application, people, devices and requests.
package struct LoadNames: Sendable, Hashable {
  /// The beginning of every load run's application, so that nobody takes one for a real application.
  package static let applicationPrefix: Name = "load."

  /// The run, as it was named.
  package let run: String
  private let tokenPrefix: UInt64
  private let series: UInt64
  private let (firstDevice, firstUser, firstRequest): (Int, Int, Int)

  /// Names a run, or a share of it.
  ///
  /// - Parameters:
  ///   - series: the first half of the requests' ids. All shares of a run have one, which no other run and no other step has.
  ///   - firstDevice: the number of the share's first device among all of the run.
  ///   - firstUser: the number of its first person.
  ///   - firstRequest: the number of its first request.
  package init(run: String, series: UInt64, firstDevice: Int = 0, firstUser: Int = 0, firstRequest: Int = 0) {
    (self.run, self.series) = (run, series)
    (self.firstDevice, self.firstUser, self.firstRequest) = (firstDevice, firstUser, firstRequest)
    tokenPrefix = StableHash.hash(run)
  }

  /// The application of all devices and requests.
  package var application: Name { "\(Self.applicationPrefix)\(run)" }

  /// A person.
  package func user(_ number: Int) -> Name { "load-\(run)-\(firstUser + number)" }

  /// The token of a device.
  package func token(_ device: Int) -> DeviceToken {
    let text = Self.hexadecimal(tokenPrefix) + String(repeating: "0", count: 32) + Self.hexadecimal(UInt64(firstDevice + device))
    guard let token = DeviceToken(text) else { preconditionFailure("64 hexadecimal digits are a token") }
    return token
  }

  /// The number of the device with a token; nil for a device of anyone else. That of another share is negative or beyond the devices of this one.
  package func device(ofToken token: UnsafeRawBufferPointer) -> Int? {
    guard token.count == 64, Hexadecimal.read(UInt64.self, from: token, at: 0) == tokenPrefix,
      let device = Hexadecimal.read(UInt64.self, from: token, at: 48)
    else { return nil }
    return Int(exactly: device).map { $0 - firstDevice }
  }

  /// The target of a request.
  package func target(_ target: LoadRequest.Target) -> Name {
    switch target {
    case .user(let user): "user:\(self.user(user))"
    case .device(let device): "device:\(token(device))"
    }
  }

  /// The apns-id of a request.
  package func id(_ request: Int) -> NotificationID { NotificationID(high: series, low: UInt64(firstRequest + request)) }

  /// The number of the request with an apns-id; nil for a request of anyone else. That of another share is negative or beyond those of this one.
  package func request(of id: NotificationID) -> Int? { id.high == series ? Int(exactly: id.low).map { $0 - firstRequest } : nil }

  /// The number of the request that a notification is of. That of a scheduled one has an apns-id of its own, and the request's as identifier.
  func request(of id: NotificationID, identifier: () -> NotificationID?) -> Int? { request(of: id) ?? identifier().flatMap(request(of:)) }

  private static func hexadecimal(_ number: UInt64) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: 16 - text.utf8.count) + text
  }
}
