import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// State files that cannot be used: each gives an error that names the file and the reason, and is left as it is.
@Suite(.timeLimit(.minutes(10))) struct StateFaultTests {
  /// The error of opening a file; nil without one.
  private static func error(_ path: String, _ limits: StateLimits = StateLimits()) async -> DeviceError? {
    let database = DeviceDatabase.forTests(path, limits)
    var found: DeviceError?
    do throws(DeviceError) { _ = try await database.open() } catch { found = error }
    await database.closeForTests()
    return found
  }

  /// Makes a database with one notification, and returns its bytes.
  private static func make(_ path: String) async throws -> Data {
    let database = DeviceDatabase.forTests(path)
    _ = try await database.open()
    try await database.commit([
      .listed(DeviceDatabase.listed(try notifyFrame(notify(1, id: "one", revision: "1")), at: 1), isPending: false)
    ])
    await database.closeForTests()
    return try Data(contentsOf: URL(fileURLWithPath: path))
  }

  /// Runs statements on a database.
  private static func sqlite(_ path: String, _ statements: String...) throws {
    let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
    defer { connection.close() }
    for statement in statements { try connection.run(statement) }
  }

  @Test(arguments: ["my thesis", "my thesis\n", String(repeating: "my thesis ", count: 10_000), "SQLite format 3"])
  func `another program's file is refused and left as it is`(text: String) async throws {
    try await TestFolder.with { folder in
      let path = try folder.write("notes", text)
      let error = try #require(await Self.error(path))
      #expect(error.code == .stateDamaged && error.description.contains(path))
      #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
    }
  }

  @Test func `another program's database is refused and left as it is`() async throws {
    try await TestFolder.with { folder in
      let path = try folder.write("notes", "")
      try Self.sqlite(path, "CREATE TABLE notes (text TEXT)", "INSERT INTO notes VALUES ('a')")
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect(await Self.error(path)?.code == .stateUnusable)
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
  }

  @Test func `a database of a newer version is refused with both versions, and left as it is`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      _ = try await Self.make(path)
      try Self.sqlite(path, "PRAGMA user_version = 7")
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      let error = try #require(await Self.error(path))
      #expect(error.code == .stateNewer && error.description.contains("version 7") && error.description.contains(path))
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
  }

  @Test func `a damaged database is found at the start and left as it is`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      let sound = try await Self.make(path)
      // The header of each page but the first, and the end of the file.
      for offset in stride(from: 4096, to: sound.count, by: 4096) {
        var bytes = sound
        for place in offset..<offset + 12 { bytes[place] = 0xA5 }
        try bytes.write(to: URL(fileURLWithPath: path))
        let error = try #require(await Self.error(path), "page at \(offset)")
        #expect(error.code == .stateDamaged && error.description.contains(path))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
      }
      try sound.dropLast(5_000).write(to: URL(fileURLWithPath: path))
      #expect(await Self.error(path)?.code == .stateDamaged)
    }
  }

  @Test(arguments: [1, 700, 1_500]) func `a file that was copied without its log is damaged, and a whole copy is not`(ids: Int) async throws
  {
    try await TestFolder.with { folder in
      let (path, files) = (folder.path + "/state", FileManager.default)
      let database = DeviceDatabase.forTests(path)
      _ = try await database.open()
      try await database.commit((1...ids).map { .took(Name("\($0)"), at: 1) })
      try await database.commit([.badge(7)])
      try files.copyItem(atPath: path, toPath: path + "-alone")
      for suffix in ["", "-wal"] { try files.copyItem(atPath: path + suffix, toPath: path + "-whole" + suffix) }
      try Self.sqlite(path, "VACUUM INTO '\(path)-vacuumed'")
      await database.closeForTests()
      try files.copyItem(atPath: path, toPath: path + "-closed")
      for name in ["whole", "vacuumed", "closed"] {
        let copy = DeviceDatabase.forTests("\(path)-\(name)")
        let state = try await copy.open()
        #expect(state.badge == 7 && state.ids.count == ids, "\(name)")
        await copy.closeForTests()
      }
      let before = try Data(contentsOf: URL(fileURLWithPath: path + "-alone"))
      let error = try #require(await Self.error(path + "-alone"))
      #expect(error.code == .stateDamaged && error.description.contains("-wal"), "\(error)")
      await #expect { try await UserNotificationCenter.shared(in: path + "-alone", application: "com.example.shop") } throws: {
        ($0 as? DeviceError)?.code == .stateDamaged
      }
      #expect(try Data(contentsOf: URL(fileURLWithPath: path + "-alone")) == before)
    }
  }

  @Test func `a device that was killed while its log began is no copy, also after another process has moved the log`() async throws {
    try await TestFolder.with { folder in
      let (path, files) = (folder.path + "/state", FileManager.default)
      let database = DeviceDatabase.forTests(path)
      _ = try await database.open()
      try await database.commit([.badge(7)])
      try Self.sqlite(path, "PRAGMA user_version = \(StateSchema.needingLog)")
      for suffix in ["", "-wal"] { try files.copyItem(atPath: path + suffix, toPath: path + "-killed" + suffix) }
      await database.closeForTests()
      let center = try await UserNotificationCenter.shared(in: path + "-killed", application: "com.example.shop")
      #expect(try await center.badgeCount() == 7)
      await center.close()
      #expect(!files.fileExists(atPath: path + "-killed-wal"))
      let again = DeviceDatabase.forTests(path + "-killed")
      #expect(try await again.open().badge == 7)
      await again.closeForTests()
    }
  }

  @Test func `a file that is not empty and has no tables is damaged`() async throws {
    try await TestFolder.with { folder in
      let path = try folder.write("state", "")
      try Self.sqlite(path, "PRAGMA journal_mode = WAL")
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect(!before.isEmpty)
      #expect(await Self.error(path)?.code == .stateDamaged)
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
  }

  @Test func `a notification that cannot be read is damage`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      _ = try await Self.make(path)
      try Self.sqlite(path, "UPDATE notifications SET frame = x'7b7d'")
      #expect(await Self.error(path)?.code == .stateDamaged)
    }
  }

  @Test(arguments: ["DELETE FROM registration", "DELETE FROM device", "DROP TABLE commands", "DROP TABLE registration"])
  func `a database that lacks what each change needs is damaged`(_ statement: String) async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      _ = try await Self.make(path)
      try Self.sqlite(path, statement)
      #expect(await Self.error(path)?.code == .stateDamaged)
    }
  }

  /// SQLite treats connections of one process and of several alike.
  @Test func `a database that another connection keeps locked is given up after the bound, and works afterwards`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      var limits = StateLimits()
      limits.busyMilliseconds = 200
      let database = DeviceDatabase.forTests(path, limits)
      _ = try await database.open()
      let holder = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try holder.run("BEGIN IMMEDIATE")
      await #expect {
        try await database.commit([.badge(1)])
      } throws: { error in
        (error as? DeviceError)?.code == .stateInUse && "\(error)".contains(path)
      }
      try holder.run("ROLLBACK")
      try await database.commit([.badge(2)])
      #expect(try holder.integer("SELECT badge FROM device") == 2)
      holder.close()
      await database.closeForTests()
    }
  }

  @Test(arguments: [0o444, 0o644]) func `a file that this user may not write is refused and left as it is`(mode: Int) async throws {
    try await CarillonCommand.with { command in
      let folder = command.folder.path
      let path = folder + "/state"
      let before = try await Self.make(path)
      let files = FileManager.default
      try files.setAttributes([.posixPermissions: mode & 0o444], ofItemAtPath: path)
      try files.setAttributes([.posixPermissions: mode == 0o444 ? 0o777 : 0o555], ofItemAtPath: folder)
      let run = try await command.run(
        ["ws://127.0.0.1:1/", DeviceUnderTest.token, path, "0"], environment: ["TESTS_AS_NOBODY": "1"],
        program: CarillonCommand.product("KilledDevice"))
      try files.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder)
      #expect(run.lines.first == "error stateReadOnly" && run.output.contains(path), "\(run.output) \(run.errors)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
  }

  /// The limit of the file and the end of the disk are one error of SQLite.
  @Test func `a database that cannot grow refuses a batch as a whole, and keeps what it has`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      var limits = StateLimits()
      limits.bytes = 100_000
      let database = DeviceDatabase.forTests(path, limits)
      _ = try await database.open()
      try await database.commit([.badge(1)])
      let body = String(repeating: "x", count: 10_000)
      let frames = try (0..<20).map { try notifyFrame(notify(1, id: "\($0)", revision: "1", aps: ["alert": .string(body)])) }
      let batch: [StateChange] = frames.map { .listed(DeviceDatabase.listed($0, at: 1), isPending: false) } + [.badge(2)]
      await #expect { try await database.commit(batch) } throws: { error in
        (error as? DeviceError)?.code == .stateFull && "\(error)".contains(path)
      }
      try await database.commit([.took("one", at: 1)])
      await database.closeForTests()
      let again = DeviceDatabase.forTests(path)
      #expect(
        try await again.openForTests() == StoredState(ids: [.init(id: "one", at: 1)], badge: 1, token: DeviceToken(DeviceUnderTest.token)))
      await again.closeForTests()
    }
  }

  @Test func `a device whose file cannot grow stops, acknowledges nothing more, and throws at a response`() async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let device = DeviceUnderTest(url) {
          $0.stateFile = folder.path + "/state"
          $0.stateLimits.bytes = 200_000
        }
        try await device.device.start()
        await cluster.expect("hello")
        await cluster.send(notify(1, id: "small", revision: "1"))
        await device.expect("shown small 1")
        await cluster.expect("ack")
        await cluster.send(notify(2, id: "large", revision: "2", aps: ["alert": .string(String(repeating: "x", count: 300_000))]))
        await eventually("it has failed") {
          device.events.contains { if case .failed(let error) = $0 { error.code == .stateFull } else { false } }
        }
        #expect(device.story == ["shown small 1"])
        await #expect { try await device.device.open("small") } throws: { ($0 as? DeviceError)?.code == .stateFull }
        #expect(await cluster.frames("ack").map { $0["deliveries"] } == [[1]])
        #expect(await cluster.frames("response").isEmpty)
        await device.close()
        // With room the cluster sends it again.
        let again = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
        try await again.device.start()
        await cluster.expect("hello", of: 1)
        await cluster.send(notify(1, id: "small", revision: "1"), notify(2, id: "large", revision: "2"), to: 1)
        await again.expect("dropped small known", "shown large 2")
        await again.close()
      }
    }
  }

  /// How often this process has a file open.
  private static func descriptors(of path: String) -> Int {
    let files = FileManager.default
    let open = (try? files.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return open.count { (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
  }

  @Test func `a file has one device, by whichever of its names`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      // The link is there before the file.
      try FileManager.default.createSymbolicLink(atPath: path + "-link", withDestinationPath: path)
      let first = DeviceUnderTest("ws://127.0.0.1:1/") { $0.stateFile = path + "-link" }
      try await first.device.start()
      for name in [path, path + "-link", folder.path + "/./state"] {
        let second = DeviceUnderTest("ws://127.0.0.1:1/") { $0.stateFile = name }
        let error = await #expect(throws: DeviceError.self) { try await second.device.start() }
        #expect(error?.code == .stateInUse, "\(name)")
        await second.close()
      }
      // The first refusal leaves one descriptor open until the first device closes the file; later ones use it again.
      let before = Self.descriptors(of: path)
      for _ in 0..<20 { #expect(await Self.error(path)?.code == .stateInUse) }
      #expect(Self.descriptors(of: path) == before)
      await first.close()
      #expect(Self.descriptors(of: path) == 0)
      #expect(await Self.error(path) == nil)
    }
  }

  @Test func `a file that gets another name while a device has it gets no second device by that name`() async throws {
    try await TestFolder.with { folder in
      let (path, other) = (folder.path + "/state", folder.path + "/other")
      let first = DeviceDatabase.forTests(path)
      _ = try await first.open()
      try FileManager.default.linkItem(atPath: path, toPath: other)
      #expect(await Self.error(other)?.code == .stateInUse)
      try FileManager.default.removeItem(atPath: path)
      #expect(await Self.error(other)?.code == .stateInUse)
      try FileManager.default.linkItem(atPath: other, toPath: path)
      await first.closeForTests()
      // The log is beside one of the names, so by the other one the file may lack something.
      for name in [path, other] {
        let error = try #require(await Self.error(name))
        #expect(error.code == .stateUnusable && error.description.contains("2 names"))
        await #expect { try await UserNotificationCenter.shared(in: name, application: "com.example.shop") } throws: {
          ($0 as? DeviceError)?.code == .stateUnusable
        }
      }
      try FileManager.default.removeItem(atPath: other)
      #expect(await Self.error(path) == nil)
    }
  }

  @Test func `neither a device that is refused nor one that ends takes SQLite's locks from another database of the process`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      let first = DeviceDatabase.forTests(path)
      _ = try await first.open()
      // Closing it would release the locks.
      let descriptor = open(path, O_RDWR | O_CLOEXEC)
      func isLocked() -> Bool {
        var lock = flock()
        (lock.l_type, lock.l_len) = (Int16(F_WRLCK), 1 << 40)
        // `F_OFD_GETLK`, for which this process is another owner.
        return fcntl(descriptor, 36, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
      }
      #expect(isLocked())
      #expect(await Self.error(path)?.code == .stateInUse)
      #expect(isLocked())
      let other = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      #expect(try other.integer("SELECT badge FROM device") == 0)
      await first.closeForTests()
      #expect(isLocked())
      #expect(await Self.error(path) == nil)
      #expect(isLocked())
      other.close()
      #expect(!isLocked())
      close(descriptor)
    }
  }

  @Test func `a name that SQLite would take for a database in memory is a file`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/" + ":memory:"
      let database = try await Self.make(path)
      #expect(!database.isEmpty)
      // Each name is resolved, so SQLite gets an absolute one; it must not matter.
      #expect(throws: DeviceError.self) { try SQLiteConnection(path: ":memory:", busyMilliseconds: 1) }
    }
  }

  @Test func `removals have returned when the database has them`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      let device = DeviceUnderTest("ws://127.0.0.1:1/") {
        $0.stateFile = path
        $0.stateLimits.busyMilliseconds = hangMilliseconds
      }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      let content = NotificationContent(title: "Tea")
      for identifier: Name in ["a", "b"] {
        try await center.add(NotificationRequest(identifier: identifier, content: content))
        try await center.add(NotificationRequest(identifier: identifier, content: content, trigger: .timeInterval(3_600, repeats: false)))
        try await center.add(NotificationRequest(identifier: Name(identifier.text + "2"), content: content))
      }
      let removals: [@Sendable () async -> Void] = [
        { await center.removePendingNotificationRequests(withIdentifiers: ["a"]) },
        { await center.removeDeliveredNotifications(withIdentifiers: ["a2"]) },
        { await center.removeAllPendingNotificationRequests() }, { await center.removeAllDeliveredNotifications() },
      ]
      for (number, remove) in removals.enumerated() {
        let other = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
        try other.run("BEGIN IMMEDIATE")
        let hasReturned = Mutex(false)
        let removal = Task {
          await remove()
          hasReturned.withLock { $0 = true }
        }
        for _ in 0..<100 { _ = await device.device.badge }
        #expect(hasReturned.withLock { !$0 }, "removal \(number)")
        try other.run("ROLLBACK")
        other.close()
        await removal.value
      }
      #expect(await center.deliveredNotifications().isEmpty)
      #expect(await center.pendingNotificationRequests().isEmpty)
      await device.close()
    }
  }
}
