/// Why the cluster closes a device's connection: the whole table.
///
/// | code | name | reconnects |
/// |---|---|---|
/// | 4000 | protocolError | after 60 s to 10 min |
/// | 4001 | helloTimeout | after 1 s to 2 min |
/// | 4002 | badHello | not by itself: the hello has to change |
/// | 4003 | unauthorized | not by itself: the credential has to change |
/// | 4004 | takenOver | not by itself: the same token is connected elsewhere |
/// | 4005 | slowConsumer | after 1 s to 2 min |
/// | 4006 | pingTimeout | at once, then up to 2 min |
/// | 4007 | draining | when `goaway` said |
/// | 4009 | serviceUnavailable | after 2 s to 5 min |
/// | 4010 | messageTooLarge | after 60 s to 10 min |
/// | 4011 | tooManyErrors | after 60 s to 10 min |
/// | 4012 | tooManyFrames | after 10 s to 10 min |
/// | 4013 | unregistered | not by itself: it signed out |
/// | 4014 | registrationLost | at once, then up to 2 min |
/// | 4015 | tooManyResponses | after 10 s to 10 min |
/// | 4016 | acknowledgementTimeout | after 1 s to 2 min |
/// | 4017 | unsupportedFrame | after 60 s to 10 min |
/// | 4018 | credentialExpired | when `goaway` said, with another credential |
/// | 4019 | wrongEnvironment | not by itself: its cluster is another one |
///
/// A device that got no `welcome` may be taken over by its own hello. The cluster may process that hello after the device's next one. The
/// device may have given up, the connection may have broken, or a code such as `draining` may have closed it. The device reconnects once
/// for each such hello, as after `registrationLost`.
public enum CloseCode: UInt16, Sendable, CaseIterable {
  /// The frame is not a JSON object of the protocol, or not the expected one.
  case protocolError = 4000
  /// No hello came within its deadline.
  case helloTimeout = 4001
  /// A member of the hello is missing or wrong.
  case badHello = 4002
  /// There is no credential, or it is not for this device, application and user.
  ///
  /// The close frame's text says which.
  case unauthorized = 4003
  /// The same device token has connected elsewhere.
  case takenOver = 4004
  /// The device does not read what the cluster sends.
  case slowConsumer = 4005
  /// The device does not answer pings.
  case pingTimeout = 4006
  /// The worker drains.
  case draining = 4007
  /// A service that the session needs is not available.
  case serviceUnavailable = 4009
  /// A frame is larger than the limit in `welcome`.
  case messageTooLarge = 4010
  /// Too many frames of the device were refused.
  case tooManyErrors = 4011
  /// Too many frames came in a period, or before the hello.
  ///
  /// Pings, pongs and fragments count.
  case tooManyFrames = 4012
  /// The device has unregistered.
  case unregistered = 4013
  /// The cluster has lost the registration and needs it again.
  case registrationLost = 4014
  /// Too many responses wait for their answers.
  case tooManyResponses = 4015
  /// The device reads, but does not acknowledge deliveries.
  case acknowledgementTimeout = 4016
  /// A frame is not text.
  case unsupportedFrame = 4017
  /// The credential of the session has expired.
  case credentialExpired = 4018
  /// The device belongs to the other environment.
  case wrongEnvironment = 4019

  /// The name in the table.
  public var name: String { "\(self)" }

  /// The text of the close frame: what happened, and what to do.
  ///
  /// It has at most 123 bytes.
  public var reason: String {
    switch self {
    case .protocolError: "a frame is no JSON object of carillon.v1; correct the device's software"
    case .helloTimeout: "no hello came in time; send it first, at once"
    case .badHello: "the hello has a missing or wrong member; correct it before the device reconnects"
    case .unauthorized: "the credential is missing, or does not hold for this device, application and user; get another one"
    case .takenOver: "the same device token has connected elsewhere; do not reconnect by yourself"
    case .slowConsumer: "what was sent is not read fast enough; reconnect, nothing is lost"
    case .pingTimeout: "pings were not answered; reconnect"
    case .draining: "the worker is going down; reconnect when goaway said"
    case .serviceUnavailable: "the cluster cannot serve now; reconnect later"
    case .messageTooLarge: "a frame is larger than the limit of welcome; send smaller ones"
    case .tooManyErrors: "too many frames were refused; correct the device's software"
    case .tooManyFrames: "too many frames in too short a time; send fewer"
    case .unregistered: "the device has unregistered; reconnect when somebody signs in"
    case .registrationLost: "the cluster has to be told again who the device is; reconnect with a hello"
    case .tooManyResponses: "too many responses wait for their answers; reconnect later and send fewer at a time"
    case .acknowledgementTimeout: "what was sent is not acknowledged; reconnect, nothing is lost"
    case .unsupportedFrame: "a frame is not text; correct the device's software"
    case .credentialExpired: "the credential has expired; reconnect with another one when goaway said"
    case .wrongEnvironment: "this cluster serves the other environment; connect to the cluster of the device's own"
    }
  }

  /// Whether and when the device reconnects.
  public var reconnection: Reconnection {
    switch self {
    case .badHello, .unauthorized, .takenOver, .unregistered, .wrongEnvironment: .never
    case .protocolError, .messageTooLarge, .tooManyErrors, .unsupportedFrame: .backOff(from: 60_000, to: 600_000)
    case .helloTimeout, .slowConsumer, .acknowledgementTimeout: .backOff(from: 1_000, to: 120_000)
    case .pingTimeout, .registrationLost: .backOff(from: 0, to: 120_000)
    case .draining, .credentialExpired: .asTold
    case .serviceUnavailable: .backOff(from: 2_000, to: 300_000)
    case .tooManyFrames, .tooManyResponses: .backOff(from: 10_000, to: 600_000)
    }
  }

  /// Returns whether and when a device reconnects after any close code.
  ///
  /// A code that is not in the table counts as a back-off of up to 2 minutes.
  public static func reconnection(after code: UInt16) -> Reconnection {
    CloseCode(rawValue: code)?.reconnection ?? .backOff(from: 0, to: 120_000)
  }
}

/// Whether and when a device reconnects.
public enum Reconnection: Sendable, Equatable {
  /// The device reconnects only after a change on its side.
  case never
  /// After `reconnectAfterMs` of the `goaway`, at most an hour.
  ///
  /// Without a `goaway` it is `backOff(from: 0, to: 120_000)`.
  case asTold
  /// After a time that grows with each failed attempt, in milliseconds.
  case backOff(from: Int, to: Int)

  /// The longest wait that a `goaway` may ask for, in milliseconds.
  ///
  /// For a longer one the device waits a random time.
  public static var longestTold: Int { 3_600_000 }

  /// Returns the milliseconds to wait after a `goaway`.
  ///
  /// It is the time in the `goaway` and up to half a second more.
  ///
  /// - Parameters:
  ///   - told: `reconnectAfterMs`.
  ///   - jitter: a random number from 0 to 1.
  public static func wait(told: Int, jitter: Double) -> Int {
    let share = min(max(jitter, 0), 1)
    // Devices that all got the same absurd time must not reconnect together.
    guard told <= longestTold else { return longestTold / 2 + Int(share * Double(longestTold / 2)) }
    return max(told, 0) + Int(share * Double(firstWindow))
  }

  /// The window of the first attempt, in milliseconds.
  private static var firstWindow: Int { 500 }

  /// Returns the milliseconds to wait before an attempt; `nil` if the device does not reconnect.
  ///
  /// - Parameters:
  ///   - attempt: 0 for the first attempt after the close.
  ///   - told: `reconnectAfterMs` of the `goaway`; nil if none came.
  ///   - jitter: a random number from 0 to 1, so that a fleet does not reconnect at once.
  public func wait(attempt: Int, told: Int?, jitter: Double) -> Int? {
    switch self {
    case .never: return nil
    case .asTold:
      if attempt == 0, let told { return Self.wait(told: told, jitter: jitter) }
      return Reconnection.backOff(from: 0, to: 120_000).wait(attempt: attempt, told: nil, jitter: jitter)
    case .backOff(let first, let longest):
      // The window doubles, from one second on.
      let window = attempt == 0 ? Self.firstWindow : min(1_000 << min(attempt, 20), longest)
      let wait = Double(first) + min(max(jitter, 0), 1) * Double(window)
      return min(Int(wait), max(longest, first))
    }
  }
}
