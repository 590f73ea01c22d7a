internal import EventLoop
internal import Glibc
internal import Notifications

/// The database on the disk. SQLite blocks, so all its calls run on a thread of the database's own, never on the device's loop.
actor DeviceDatabase {
  /// Whose state the file has.
  struct Owner: Sendable {
    var token: String
    var application: Name
    /// Whether the device takes the token of a file that exists.
    var adoptsToken = false
  }

  nonisolated let disk: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { disk.asUnownedSerialExecutor() }

  private let path: String
  private let owner: Owner
  private let limits: StateLimits
  private var connection: SQLiteConnection?
  /// Holds the lock that keeps a second device from the file.
  private var lock: Int32 = -1

  /// Names the file; `open` opens it.
  init(path: String, owner: Owner, limits: StateLimits) {
    (self.path, self.owner, self.limits) = (path, owner, limits)
    disk = EventLoop(name: "device-state")
  }

  // MARK: Opening

  /// Opens the file, or makes it, and reads the state. A file that cannot be used is left as it is.
  func open() throws(DeviceError) -> StoredState {
    try takeLock()
    let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(clamping: limits.busyMilliseconds))
    self.connection = connection
    if connection.isReadOnly {
      throw DeviceError(.stateReadOnly, "the state file \(path) cannot be written: change the permissions of the file and its folder")
    }
    let version = try connection.integer("PRAGMA user_version") ?? 0
    let tables = try connection.integer("SELECT count(*) FROM sqlite_schema") ?? 0
    let application = try connection.integer("PRAGMA application_id") ?? 0
    let isNew = application == 0 && version == 0 && tables == 0
    guard isNew || application == StateSchema.applicationID else {
      throw DeviceError(.stateUnusable, "\(path) is the database of another program: name another file")
    }
    guard version <= StateSchema.version else {
      throw DeviceError(
        .stateNewer,
        "the state file \(path) has tables of version \(version), and this program knows \(StateSchema.version): use a newer program, or name another file"
      )
    }
    try prepare(connection)
    if isNew { try make(connection) }
    let soundness = try connection.text("PRAGMA quick_check(1)")
    guard soundness == "ok" else { throw DeviceError.damaged(path, soundness) }
    return try read(connection)
  }

  /// Takes the lock of the file's device, and makes the file readable by its owner only.
  ///
  /// The lock is a file of its own: closing a second descriptor of the database would release SQLite's locks on it.
  private func takeLock() throws(DeviceError) {
    lock = Glibc.open(path + "-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else { throw cannotOpen() }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      throw DeviceError(.stateInUse, "the state file \(path) is in use by another device process: end that one, or name another file")
    }
    let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    // SQLite reads a file that cannot be written, and says more about it.
    guard file >= 0 || errno == EACCES else { throw cannotOpen() }
    if file >= 0 { Glibc.close(file) }
  }

  private func cannotOpen() -> DeviceError {
    let reason = String(cString: strerror(errno))
    guard errno == EACCES || errno == EROFS || errno == EPERM else {
      return DeviceError(.stateUnusable, "the state file \(path) cannot be opened: \(reason)")
    }
    return DeviceError(
      .stateReadOnly, "the state file \(path) cannot be written: \(reason). Change the permissions of the file and its folder")
  }

  private func prepare(_ connection: SQLiteConnection) throws(DeviceError) {
    _ = try connection.text("PRAGMA journal_mode = WAL")
    // In WAL only FULL makes each commit durable.
    try connection.run("PRAGMA synchronous = FULL")
    try connection.run("PRAGMA journal_size_limit = \(4 << 20)")
    let pageBytes = max(try connection.integer("PRAGMA page_size") ?? 4096, 512)
    try connection.run("PRAGMA max_page_count = \(max(Int64(clamping: limits.bytes) / pageBytes, 1))")
  }

  private func make(_ connection: SQLiteConnection) throws(DeviceError) {
    try connection.transaction { () throws(DeviceError) in
      for table in StateSchema.tables { try connection.run(table) }
      try connection.run("INSERT INTO device VALUES (1, ?, ?, 0, NULL)", .text(owner.token), .text(owner.application.text))
      try connection.run("PRAGMA application_id = \(StateSchema.applicationID)")
      try connection.run("PRAGMA user_version = \(StateSchema.version)")
    }
  }

  private func read(_ connection: SQLiteConnection) throws(DeviceError) -> StoredState {
    var state = StoredState()
    var isOwned = false
    try connection.rows("SELECT token, application, badge, floor FROM device") { row in
      state.token = DeviceToken(row.text(0))
      isOwned = (owner.adoptsToken || row.bytes(0) == Array(owner.token.utf8)) && row.bytes(1) == Array(owner.application.utf8)
      state.badge = Int(row.integer(2))
      state.floor = row.isNull(3) ? nil : row.text(3)
    }
    guard isOwned else {
      throw DeviceError(.stateUnusable, "the state file \(path) belongs to another device or application: name another file")
    }
    try connection.rows("SELECT id, at FROM ids ORDER BY place") {
      state.ids.append(.init(id: Name($0.text(0)), at: $0.integer(1)))
    }
    try connection.rows("SELECT identifier, revision, at FROM revisions ORDER BY place") {
      state.revisions.append(.init(identifier: Name($0.text(0)), revision: $0.text(1), at: $0.integer(2)))
    }
    var unreadable = 0
    try connection.rows("SELECT registered, environment, settings, categories FROM registration") { row in
      state.registration = StoredRegistration(
        isRegistered: row.integer(0) != 0, environment: row.isNull(1) ? nil : row.text(1), settings: row.bytes(2),
        categories: row.bytes(3))
    }
    try connection.rows("SELECT pending, local, at, presentation, frame, after FROM notifications ORDER BY place") { row in
      guard var listed = listed(row, 1) else { return unreadable += 1 }
      listed.after = row.integer(5)
      if row.integer(0) == 0 { state.delivered.append(listed) } else { state.pending.append(listed) }
    }
    try connection.rows(
      """
      SELECT response, receipt, identifier, action, user_text, at, dynamic, unsent, untold, notification_local, notification_at,
        notification_presentation, notification_frame, stage, locked, options
      FROM responses ORDER BY place
      """
    ) { row in
      guard let notification = listed(row, 9), let stage = StoredResponse.Stage(rawValue: row.integer(13)) else { return unreadable += 1 }
      let frame = ResponseFrame(
        response: row.text(0), receipt: row.text(1), identifier: Name(row.text(2)), action: Name(row.text(3)),
        userText: row.isNull(4) ? nil : row.text(4), at: row.isNull(5) ? nil : row.integer(5), isDynamic: row.integer(6) != 0)
      state.responses.append(
        StoredResponse(
          frame: frame, notification: notification, isUnsent: row.integer(7) != 0, isUntold: row.integer(8) != 0, stage: stage,
          isLocked: row.integer(14) != 0, options: StoredResponse.options(row.text(15))))
    }
    guard unreadable == 0 else { throw DeviceError.damaged(path, "\(unreadable) notifications in it cannot be read") }
    return state
  }

  /// The notification in four columns: whether it is local, its time, how it is shown, and its frame.
  private func listed(_ row: SQLiteRow, _ column: Int32) -> StoredState.Listed? {
    guard let frame = StoredFrame.frame(row.bytes(column + 3)) else { return nil }
    return StoredState.Listed(
      frame: frame, takenAt: row.integer(column + 1),
      presentation: PresentationOptions(rawValue: UInt8(truncatingIfNeeded: row.integer(column + 2))), isLocal: row.integer(column) != 0)
  }

  // MARK: Writing

  /// Writes changes in one transaction, and returns when they are durable. After an error nothing of them is in the file.
  func commit(_ changes: [StateChange]) throws(DeviceError) {
    guard let connection else { throw DeviceError(.stateUnusable, "the state file \(path) is closed") }
    try connection.transaction { () throws(DeviceError) in
      for change in changes { try write(change, connection) }
    }
  }

  private func write(_ change: StateChange, _ connection: SQLiteConnection) throws(DeviceError) {
    switch change {
    case .took(let id, let at):
      try connection.run("INSERT OR REPLACE INTO ids (id, at) VALUES (?, ?)", .text(id.text), .integer(at))
    case .noted(let identifier, let revision, let at):
      try connection.run(
        "INSERT OR REPLACE INTO revisions (identifier, revision, at) VALUES (?, ?, ?)", .text(identifier.text), .text(revision),
        .integer(at))
    case .listed(let notification, let isPending):
      try connection.run(
        """
        INSERT OR REPLACE INTO notifications (identifier, pending, local, at, after, presentation, frame) VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        .text(notification.identifier.text), .flag(isPending), .flag(notification.isLocal), .integer(notification.takenAt),
        .integer(isPending ? notification.takenAt : 0), .integer(Int64(notification.presentation.rawValue)),
        .bytes(StoredFrame.bytes(notification.frame)))
    case .waiting(let identifier, let anchor, let after):
      try connection.run(
        "UPDATE notifications SET at = ?, after = ? WHERE identifier = ? AND pending = 1", .integer(anchor), .integer(after),
        .text(identifier.text))
    case .unlisted(let identifiers, let isPending):
      for identifier in identifiers {
        try connection.run(
          "DELETE FROM notifications WHERE identifier = ? AND pending = ?", .text(identifier.text), .flag(isPending))
      }
    case .floor(let revision): try connection.run("UPDATE device SET floor = ?", .text(revision))
    case .registration(let registration):
      try connection.run(
        "UPDATE registration SET registered = ?, environment = ?, settings = ?, categories = ?", .flag(registration.isRegistered),
        registration.environment.map { .text($0.rawValue) } ?? .null, registration.settings.map { .bytes($0) } ?? .null,
        registration.categoriesFrame.map { .bytes($0) } ?? .null)
    case .badge(let number): try connection.run("UPDATE device SET badge = ?", .integer(Int64(number)))
    case .response(let response):
      let (frame, notification) = (response.frame, response.notification)
      try connection.run(
        """
        INSERT OR IGNORE INTO responses (response, receipt, identifier, action, user_text, at, dynamic, unsent, untold,
          notification_local, notification_at, notification_presentation, notification_frame, stage, locked, options)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .text(frame.response), .text(frame.receipt), .text(frame.identifier.text), .text(frame.action.text),
        frame.userText.map { .text($0) } ?? .null, frame.at.map { .integer($0) } ?? .null, .flag(frame.isDynamic),
        .flag(response.isUnsent), .flag(response.isUntold), .flag(notification.isLocal), .integer(notification.takenAt),
        .integer(Int64(notification.presentation.rawValue)), .bytes(StoredFrame.bytes(notification.frame)),
        .integer(response.stage.rawValue), .flag(response.isLocked), .text(response.optionsText))
    case .released: try connection.run("UPDATE responses SET locked = 0 WHERE locked = 1")
    case .withdrawn(let response): try connection.run("DELETE FROM responses WHERE response = ?", .text(response))
    case .forwarded(let response, let isUnanswered, let isLocked):
      let stage: StoredResponse.Stage = isUnanswered ? .unanswered : .forwarded
      try connection.run(
        "UPDATE responses SET stage = ?, locked = ? WHERE response = ?", .integer(stage.rawValue), .flag(isLocked), .text(response))
      try removeIfTaken(response, connection)
    case .settled(let response): try finish("unsent", response, connection)
    case .told(let response): try finish("untold", response, connection)
    case .forgot(let time, let ids, let identifiers):
      for (table, limit) in [("ids", ids), ("revisions", identifiers)] {
        try connection.run(
          "DELETE FROM \(table) WHERE at < ? OR place NOT IN (SELECT place FROM \(table) ORDER BY place DESC LIMIT ?)",
          .integer(time), .integer(Int64(limit)))
      }
    }
  }

  /// Notes that the cluster or the program has taken a response, and removes one that both have.
  private func finish(_ column: String, _ response: String, _ connection: SQLiteConnection) throws(DeviceError) {
    try connection.run("UPDATE responses SET \(column) = 0 WHERE response = ?", .text(response))
    try removeIfTaken(response, connection)
  }

  private func removeIfTaken(_ response: String, _ connection: SQLiteConnection) throws(DeviceError) {
    try connection.run("DELETE FROM responses WHERE response = ? AND unsent = 0 AND untold = 0", .text(response))
  }

  /// Closes the file.
  func end() {
    connection?.close()
    connection = nil
    if lock >= 0 {
      // A process that is being started at this moment has a copy of the descriptor until its exec, and would keep the lock.
      _ = flock(lock, LOCK_UN)
      Glibc.close(lock)
    }
    lock = -1
  }
}
