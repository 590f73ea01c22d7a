import DeviceClient
import JSON
import Notifications
import Testing

@testable import Command
@testable import DeviceTerminal

/// What the terminal shows of a notification when it comes.
@Suite struct DeviceScreenTests {
  typealias Case = (authorization: Authorization, platform: PresentationOptions?, device: String, sample: String)

  private static func authorized(_ options: Authorization.Options) -> Authorization {
    Authorization(status: .authorized, options: options)
  }

  static let cases: [Case] = [
    (authorized([:]), nil, "[1] Order\n    It is here\n    badge 3 · sound default · a", "[a] Order: It is here"),
    (authorized([.sound: false]), nil, "[1] Order\n    It is here\n    badge 3 · a", "[a] Order: It is here"),
    (authorized([.badge: false]), nil, "[1] Order\n    It is here\n    sound default · a", "[a] Order: It is here"),
    (authorized([.alert: false]), nil, "-- [1] a is in the list · badge 3 · sound default", "-- [a] is in the list"),
    (Authorization(status: .provisional), nil, "-- [1] a is in the list", "-- [a] is in the list"),
    (authorized([.scheduledDelivery: true]), nil, "-- [1] a is in the list · badge 3", "-- [a] is in the list"),
    // A television shows badges only.
    (authorized([:]), .badge, "-- badge 3", "-- badge 3"),
    (authorized([.alert: false, .notificationCenter: false, .badge: false]), nil, "-- sound default", "-- a sound"),
  ]

  @Test(arguments: cases) func `the screen shows a notification in the ways of its presentation only`(_ one: Case) throws {
    var store = NotificationStore(authorization: one.authorization)
    var frame = try Self.frame()
    frame.presentation = one.platform
    guard case .shown(let notification) = store.take(frame, now: 0) else { throw JSONError(reason: .notAnObject, offset: 0) }
    var text = DeviceText()
    text.isStyled = false
    #expect(text.shown(notification, mark: "", categories: [], preview: nil) == one.device)
    #expect(DeviceTerminal.shown(notification) == one.sample)
    // Who looks at the list sees all of it.
    if notification.presentation.contains(.list) {
      #expect(text.notification(notification, mark: "", categories: [], preview: nil).contains("It is here"))
    }
  }

  @Test(arguments: [(nil, true), (.active, false)] as [(InterruptionLevel?, Bool)])
  func `a level that the cluster has lowered is not shown`(lowered: InterruptionLevel?, isShown: Bool) throws {
    var store = NotificationStore(authorization: Self.authorized([.timeSensitive: true]))
    var frame = try Self.frame(#","interruption-level":"time-sensitive""#)
    frame.interruptionLevel = lowered
    guard case .shown(let notification) = store.take(frame, now: 0) else { throw JSONError(reason: .notAnObject, offset: 0) }
    var text = DeviceText()
    #expect(text.notification(notification, mark: "", categories: [], preview: nil).contains("time-sensitive") == isShown)
  }

  private static func frame(_ more: String = "") throws -> NotifyFrame {
    var text = #"""
      {"type":"notify","delivery":1,"id":"a","identifier":"a","revision":"1","expiration":0,"priority":10,"pushType":"alert","receipt":"r",
       "payload":{"aps":{"alert":{"title":"Order","body":"It is here"},"badge":3,"sound":"default"\#(more)}}}
      """#
    guard case .notify(let frame) = try text.withUTF8({ try ServerFrame(UnsafeRawBufferPointer($0)) }) else {
      throw JSONError(reason: .notAnObject, offset: 0)
    }
    return frame
  }
}
