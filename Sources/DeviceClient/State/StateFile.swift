internal import Notifications

/// The tables of a device's state file, for the device and for other processes. All calls block.
enum StateFile {
  // MARK: Opening

  /// Checks that a database is a device's, of a version that this program knows; returns whether it is empty.
  static func isNew(_ connection: SQLiteConnection, _ path: String) throws(DeviceError) -> Bool {
    // Whether SQLite's log lies beside the file. SQLite makes one when it reads the file.
    let hasLog = FileIdentity(path: path + "-wal") != nil
    let version = try connection.integer("PRAGMA user_version") ?? 0
    let tables = try connection.integer("SELECT count(*) FROM sqlite_schema") ?? 0
    let application = try connection.integer("PRAGMA application_id") ?? 0
    let isNew = application == 0 && version == 0 && tables == 0
    let pages = try connection.integer("PRAGMA page_count") ?? 0
    guard !isNew || pages == 0 else { throw withoutLog(path, "it has no tables") }
    guard isNew || application == StateSchema.applicationID else {
      throw DeviceError(.stateUnusable, "\(path) is the database of another program: name another file")
    }
    guard version <= StateSchema.version else {
      throw DeviceError(
        .stateNewer,
        "the state file \(path) has tables of version \(version), and this program knows \(StateSchema.version): use a newer program, or name another file"
      )
    }
    guard isNew || version != StateSchema.needingLog || hasLog else { throw withoutLog(path, "it has an earlier state") }
    return isNew
  }

  private static func withoutLog(_ path: String, _ reason: String) -> DeviceError {
    DeviceError.damaged(path, "\(reason), and its log, the file with -wal after its name, is not beside it")
  }

  /// Moves the log into the file, and marks that as a file that needs the log which begins now. So a copy without its log is recognized.
  ///
  /// A failure leaves the file as good as before, and shows itself at the next change.
  static func beginLog(_ connection: SQLiteConnection) {
    do throws(DeviceError) {
      try connection.run("PRAGMA user_version = \(StateSchema.needingLog)")
      // It waits for nobody. What another process reads at this moment stays in the log.
      _ = try connection.integer("PRAGMA wal_checkpoint(PASSIVE)")
    } catch {}
    try? connection.run("PRAGMA user_version = \(StateSchema.version)")
  }

  /// Sets how large the file may become.
  static func limit(_ connection: SQLiteConnection, _ limits: StateLimits) throws(DeviceError) {
    let pageBytes = max(try connection.integer("PRAGMA page_size") ?? 4096, 512)
    try connection.run("PRAGMA max_page_count = \(max(Int64(clamping: limits.bytes) / pageBytes, 1))")
  }

  /// Sets how the connection writes.
  static func prepare(_ connection: SQLiteConnection) throws(DeviceError) {
    _ = try connection.text("PRAGMA journal_mode = WAL")
    // In WAL only FULL makes each commit durable.
    try connection.run("PRAGMA synchronous = FULL")
    try connection.run("PRAGMA journal_size_limit = \(4 << 20)")
    // `beginLog` moves it, so that the file never has a part of it without the mark.
    _ = try connection.integer("PRAGMA wal_autocheckpoint = 0")
    // A device was killed in `beginLog`. The log is here, and the last connection that closes moves it into the file.
    guard try connection.integer("PRAGMA user_version") == StateSchema.needingLog else { return }
    try connection.run("PRAGMA user_version = \(StateSchema.version)")
  }

  // MARK: Reading

  /// Reads the lists, and what the person and the program have decided; not what only the device's own process needs.
  static func lists(
    _ connection: SQLiteConnection, _ path: String, _ extensions: ServiceExtensions
  ) throws(DeviceError) -> StoredState {
    let tables = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('device', 'registration', 'commands')")
    guard tables == 3 else { throw DeviceError.damaged(path, "a table is missing") }
    for table in ["device", "registration"] {
      guard try connection.integer("SELECT count(*) FROM \(table)") == 1 else {
        throw DeviceError.damaged(path, "the table \(table) has not one row")
      }
    }
    var state = StoredState()
    try connection.rows("SELECT token, application, badge, floor, settings, categories FROM device") { row in
      state.token = DeviceToken(row.text(0))
      state.application = Name(row.text(1))
      state.badge = Int(row.integer(2))
      state.floor = row.isNull(3) ? nil : Name(row.text(3))
      state.hello = StoredRegistration(settings: row.bytes(4), categories: row.bytes(5))
    }
    try connection.rows("SELECT registered, environment, settings, categories, person, sign_out FROM registration") { row in
      state.registration = StoredRegistration(settings: row.bytes(2), categories: row.bytes(3))
      state.registration.isRegistered = row.integer(0) != 0
      state.registration.environment = DeviceEnvironment(rawValue: row.text(1))
      state.registration.person = row.isNull(4) ? nil : Name(row.text(4))
      state.registration.signOutRequest = row.isNull(5) ? nil : Name(row.text(5))
    }
    if try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'clock'") == 1 {
      try connection.rows("SELECT boot, offset FROM clock") { state.clock = ElapsedClock(boot: $0.text(0), offset: $0.integer(1)) }
    }
    var unreadable = 0
    try connection.rows("SELECT pending, local, at, presentation, frame, changed, after FROM notifications ORDER BY place") { row in
      guard let listed = listed(row, 1, extensions) else { return unreadable += 1 }
      guard row.integer(0) == 1 else { return state.delivered.append(listed) }
      state.pending.append(.init(notification: listed, anchor: listed.takenAt, after: row.integer(6)))
    }
    guard unreadable == 0 else { throw unread(path, unreadable) }
    return state
  }

  /// Reads the rest of the state, which only the device's own process needs.
  static func history(
    _ state: inout StoredState, _ connection: SQLiteConnection, _ path: String, _ extensions: ServiceExtensions
  ) throws(DeviceError) {
    var read = state
    try connection.rows("SELECT id, at FROM ids ORDER BY place") {
      read.ids.append(.init(id: Name($0.text(0)), at: $0.integer(1)))
    }
    try connection.rows("SELECT identifier, revision, at FROM revisions ORDER BY place") {
      read.revisions.append(.init(identifier: Name($0.text(0)), revision: Name($0.text(1)), at: $0.integer(2)))
    }
    var unreadable = 0
    try connection.rows("SELECT at, begun, frame FROM extending ORDER BY place") { row in
      guard let frame = NotifyFrame(stored: row.bytes(2)) else { return unreadable += 1 }
      let notification = DeliveredNotification(frame, takenAt: row.integer(0), isLocal: false, extensions)
      read.extending.append(.init(notification: notification, isBegun: row.integer(1) != 0))
    }
    try connection.rows(
      """
      SELECT response, receipt, identifier, action, user_text, at, dynamic, unsent, untold, notification_local, notification_at,
        notification_presentation, notification_frame, notification_changed, stage, locked, options
      FROM responses ORDER BY place
      """
    ) { row in
      guard let notification = listed(row, 9, extensions), let stage = StoredResponse.Stage(rawValue: row.integer(14)) else {
        return unreadable += 1
      }
      let frame = ResponseFrame(
        response: row.text(0), receipt: row.text(1), identifier: Name(row.text(2)), action: Name(row.text(3)),
        userText: row.isNull(4) ? nil : row.text(4), at: row.isNull(5) ? nil : row.integer(5), isDynamic: row.integer(6) != 0)
      read.responses.append(
        StoredResponse(
          frame: frame, notification: notification, isUnsent: row.integer(7) != 0, isUntold: row.integer(8) != 0, stage: stage,
          isLocked: row.integer(15) != 0, options: StoredResponse.options(row.text(16))))
    }
    guard unreadable == 0 else { throw unread(path, unreadable) }
    state = read
  }

  private static func unread(_ path: String, _ count: Int) -> DeviceError {
    DeviceError.damaged(path, "\(count) notifications in it cannot be read")
  }

  /// The notification in five columns: whether it is local, its time, how it is shown, its frame, and the changed one.
  private static func listed(_ row: SQLiteRow, _ column: Int32, _ extensions: ServiceExtensions) -> DeliveredNotification? {
    guard let frame = NotifyFrame(stored: row.bytes(column + 3)) else { return nil }
    let ways = PresentationOptions(rawValue: UInt8(truncatingIfNeeded: row.integer(column + 2)))
    let notification = DeliveredNotification(
      frame, takenAt: row.integer(column + 1), isLocal: row.integer(column) != 0, extensions
    ).shown(ways)
    guard !row.isNull(column + 4) else { return notification }
    return NotifyFrame(stored: row.bytes(column + 4)).map { notification.changed(to: $0) }
  }

  // MARK: Commands of other processes

  /// Reads the commands that wait for the device after a place, in their order. One that this version does not know is nil.
  ///
  /// It reads no more of them at a time than may wait, whatever another program has written.
  static func commands(
    after place: Int64 = 0, _ connection: SQLiteConnection
  ) throws(DeviceError) -> [(place: Int64, command: StoredCommand?)] {
    var commands: [(place: Int64, command: StoredCommand?)] = []
    try connection.rows(
      "SELECT place, kind, at, value FROM commands WHERE place > ? ORDER BY place LIMIT ?", .integer(place),
      .integer(Int64(StoredCommand.maximum))
    ) { row in
      commands.append((row.integer(0), StoredCommand(kind: row.text(1), at: row.integer(2), bytes: row.bytes(3))))
    }
    return commands
  }

  /// Adds a command, in a transaction of the caller. It replaces those that it makes needless.
  ///
  /// Throws if too many commands wait for the device, or too many bytes of them.
  static func add(_ command: StoredCommand, _ connection: SQLiteConnection) throws(DeviceError) {
    if command.isReplaceable { try connection.run("DELETE FROM commands WHERE kind = ?", .text(command.kind)) }
    var (count, bytes) = (0, 0)
    try connection.rows("SELECT count(*), ifnull(sum(length(value)), 0) FROM commands") { row in
      (count, bytes) = (Int(row.integer(0)), Int(row.integer(1)))
    }
    guard count < StoredCommand.maximum, bytes + command.bytes.count <= StoredCommand.maximumBytes else {
      throw DeviceError(
        .tooManyWaiting,
        "\(count) commands with \(bytes) bytes wait for the device, and \(StoredCommand.maximum) with \(StoredCommand.maximumBytes) bytes may: start it, and try again"
      )
    }
    try connection.run(
      "INSERT INTO commands (kind, at, value) VALUES (?, ?, ?)", .text(command.kind), .integer(command.at), .bytes(command.bytes))
  }
}
