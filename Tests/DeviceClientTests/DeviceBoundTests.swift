import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// What waits for a disk that does not write has a bound.
@Suite(.timeLimit(.minutes(10))) struct DeviceBoundTests {
  private static func request(_ number: Int, bytes: Int) -> NotificationRequest {
    NotificationRequest(
      identifier: Name("n\(number)"), content: NotificationContent(title: "Tea", body: String(repeating: "x", count: bytes)))
  }

  private static let count = 1_000

  /// What the calls have returned.
  private final class Answers: Sendable {
    let stored = Mutex<Set<Name>>([])
    let codes = Mutex<[DeviceError.Code]>([])
  }

  private static func add(_ request: NotificationRequest, to center: UserNotificationCenter, _ answers: Answers) {
    Task.detached {
      do throws(DeviceError) {
        try await center.add(request)
        answers.stored.withLock { _ = $0.insert(request.identifier) }
      } catch {
        answers.codes.withLock { $0.append(error.code) }
      }
    }
  }

  @Test func `calls beyond what may wait for the disk throw, and the others are stored when it writes again`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      let device = DeviceUnderTest("ws://127.0.0.1:1/") {
        ($0.stateFile, $0.stateLimits.busyMilliseconds, $0.commandMilliseconds) = (path, 600_000, 3_600_000)
        $0.limits.delivered = 1_000
      }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      // Nothing of the device is in the lists yet, and everything that it has is written.
      try await center.setBadgeCount(1)
      let other = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try other.run("BEGIN IMMEDIATE")
      let answers = Answers()
      // Two batches of 8 MiB at most are taken: the one that is being written, and the one that waits.
      for number in 0..<Self.count { Self.add(Self.request(number, bytes: 30_000), to: center, answers) }
      await eventually("calls are refused") { answers.codes.withLock { $0.count } >= 400 }
      // The first batch goes to the disk at the end of a turn of the loop. After that the second one stays full.
      for _ in 0..<100 { _ = await device.device.badge }
      for number in Self.count..<2 * Self.count { Self.add(Self.request(number, bytes: 30_000), to: center, answers) }
      await eventually("later calls are refused") { answers.codes.withLock { $0.count } > 1_100 }
      let calls: [@Sendable () async throws -> Void] = [
        { try await center.setBadgeCount(2) }, { try await center.setNotificationCategories([]) },
        { try await device.device.setAuthorization(Authorization(status: .denied)) },
        { _ = try await device.device.fire("none") },
      ]
      for call in calls {
        let error = await #expect(throws: DeviceError.self) { try await call() }
        #expect(error?.code == .tooManyWaiting && error?.description.contains("disk") == true && error?.isRetriable == true)
      }
      #expect(answers.stored.withLock { $0.isEmpty })
      try other.run("ROLLBACK")
      await eventually("all calls have returned") {
        answers.stored.withLock { $0.count } + answers.codes.withLock { $0.count } == 2 * Self.count
      }
      #expect(answers.codes.withLock { $0.allSatisfy { $0 == .tooManyWaiting } })
      let names = answers.stored.withLock { $0 }
      #expect(names.count >= 100)
      #expect(await device.device.badge == 1)
      #expect(await device.device.authorization?.status != .denied)
      try await center.setBadgeCount(3)
      await device.close()
      other.close()
      let again = DeviceUnderTest("ws://127.0.0.1:1/") { $0.stateFile = path }
      try await again.device.start()
      #expect(await Set(again.device.delivered.map(\.identifier)) == names)
      #expect(await again.device.badge == 3)
      await again.close()
    }
  }

  @Test func `a lease that is longer than an hour is one of an hour, which the watch takes`() async throws {
    let sent = Mutex<[WatchMessage]>([])
    let device = DeviceUnderTest("ws://127.0.0.1:1/") {
      $0.state = .locked
      $0.watchConnectivity = WatchConnectivity(.phone) { bytes in
        if let message = WatchMessage(bytes) { sent.withLock { $0.append(message) } }
      }
      $0.watchConnectivity?.leaseMilliseconds = .max
    }
    try await device.device.start()
    try await device.device.userNotificationCenter.add(Self.request(1, bytes: 1))
    await eventually("it is offered") { sent.withLock { !$0.isEmpty } }
    guard case .offer(_, _, let milliseconds)? = sent.withLock({ $0.first }) else { return #expect(Bool(false)) }
    #expect(milliseconds == WatchMessage.longestMilliseconds)
    await device.close()
  }
}
