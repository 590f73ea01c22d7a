internal import EventLoop
internal import JSON
internal import Notifications

/// The database on the disk. SQLite blocks, so all its calls run on a thread of the database's own, never on the device's loop.
actor DeviceDatabase: LoopActor {
  /// Whose state the file has.
  struct Owner: Sendable {
    var token: String
    var application: Name
    /// The person who is signed in.
    var person: Name?
    /// Whether the device takes the token of a file that exists.
    var adoptsToken = false
    /// They change what is shown of its notifications.
    var extensions = ServiceExtensions(chain: nil, locale: nil)
  }

  nonisolated let loop: EventLoop

  /// The file's path; after `open` without symbolic links.
  private(set) var path: String
  private let owner: Owner
  private let limits: StateLimits
  private var connection: SQLiteConnection?
  private var lock: StateLock?
  /// About how many bytes SQLite's log has.
  private var logBytes = 0

  /// Names the file; `open` opens it.
  init(path: String, owner: Owner, limits: StateLimits) {
    (self.path, self.owner, self.limits) = (path, owner, limits)
    loop = EventLoop(name: "device-state")
  }

  // MARK: Opening

  /// Opens the file, or makes it, and reads the state. A file that cannot be used is left as it is.
  func open() throws(DeviceError) -> StoredState {
    let lock = try StateLock(path)
    (self.lock, path) = (lock, lock.path)
    let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(clamping: limits.busyMilliseconds))
    self.connection = connection
    if connection.isReadOnly {
      throw DeviceError(.stateReadOnly, "the state file \(path) cannot be written: change the permissions of the file and its folder")
    }
    let isNew = try StateFile.isNew(connection, path)
    try StateFile.limit(connection, limits)
    // Before there is a log: the file has all tables, or it is empty.
    if isNew { try make(connection) }
    try StateFile.prepare(connection)
    let soundness = try connection.text("PRAGMA quick_check(1)")
    guard soundness == "ok" else { throw DeviceError.damaged(path, soundness) }
    let state = try read(connection)
    StateFile.beginLog(connection)
    return state
  }

  private func make(_ connection: SQLiteConnection) throws(DeviceError) {
    try connection.transaction { () throws(DeviceError) in
      for table in StateSchema.tables { try connection.run(table) }
      try connection.run("INSERT INTO device VALUES (1, ?, ?, 0, NULL, NULL, NULL)", .text(owner.token), .text(owner.application.text))
      try connection.run("PRAGMA application_id = \(StateSchema.applicationID)")
      try connection.run("PRAGMA user_version = \(StateSchema.version)")
    }
  }

  private func read(_ connection: SQLiteConnection) throws(DeviceError) -> StoredState {
    var state = try StateFile.lists(connection, path, owner.extensions)
    guard owner.adoptsToken || state.token == DeviceToken(owner.token), state.application == owner.application else {
      throw DeviceError(.stateUnusable, "the state file \(path) belongs to another device or application: name another file")
    }
    if let former = state.registration.person, former != owner.person {
      try connection.transaction { () throws(DeviceError) in try forgetPerson(connection) }
      state = try StateFile.lists(connection, path, owner.extensions)
    }
    let clock = ElapsedClock(after: state.clock)
    if clock != state.clock {
      state.clock = clock
      try connection.transaction { () throws(DeviceError) in
        try connection.run(StateSchema.clock)
        try connection.run("INSERT OR REPLACE INTO clock VALUES (1, ?, ?)", .text(clock.boot), .integer(clock.offset))
      }
    }
    try StateFile.history(&state, connection, path, owner.extensions)
    return state
  }

  /// Reads the commands of other processes after a place.
  func newCommands(after place: Int64) -> Result<[(place: Int64, command: StoredCommand?)], DeviceError> {
    Result { () throws(DeviceError) in
      guard let connection else { return [] }
      return try StateFile.commands(after: place, connection)
    }
  }

  // MARK: Writing

  /// Writes changes in one transaction, and returns when they are durable. After an error nothing of them is in the file.
  func commit(_ changes: [StateChange]) throws(DeviceError) {
    guard let connection else { throw DeviceError(.stateUnusable, "the state file \(path) is closed") }
    try connection.transaction { () throws(DeviceError) in
      for change in changes { try write(change, connection) }
    }
    for change in changes { logBytes += change.cost + StateSchema.pageBytes }
    guard logBytes > StateSchema.logBytes else { return }
    logBytes = 0
    StateFile.beginLog(connection)
  }

  private func write(_ change: StateChange, _ connection: SQLiteConnection) throws(DeviceError) {
    switch change {
    case .took(let id, let at):
      try connection.run("INSERT OR REPLACE INTO ids (id, at) VALUES (?, ?)", .text(id.text), .integer(at))
    case .noted(let identifier, let revision, let at):
      try connection.run(
        "INSERT OR REPLACE INTO revisions (identifier, revision, at) VALUES (?, ?, ?)", .text(identifier.text), .text(revision.text),
        .integer(at))
    case .listed(let notification, let isPending):
      try connection.run(
        """
        INSERT OR REPLACE INTO notifications (identifier, pending, local, at, after, presentation, frame, changed)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .text(notification.identifier.text), .flag(isPending), .flag(notification.isLocal), .integer(notification.takenAt),
        .integer(isPending ? notification.takenAt : 0), .integer(Int64(notification.presentation.rawValue)),
        .bytes(notification.frame.jsonBytes), .bytes(notification.changed?.jsonBytes))
    case .extending(let notification):
      try connection.run(
        "INSERT OR REPLACE INTO extending (identifier, at, begun, frame) VALUES (?, ?, 0, ?)", .text(notification.identifier.text),
        .integer(notification.takenAt), .bytes(notification.frame.jsonBytes))
    case .extensionBegan(let identifier, let isBegun):
      try connection.run("UPDATE extending SET begun = ? WHERE identifier = ?", .flag(isBegun), .text(identifier.text))
    case .extended(let identifiers):
      for identifier in identifiers { try connection.run("DELETE FROM extending WHERE identifier = ?", .text(identifier.text)) }
    case .waiting(let identifier, let anchor, let after):
      try connection.run(
        "UPDATE notifications SET at = ?, after = ? WHERE identifier = ? AND pending = 1", .integer(anchor), .integer(after),
        .text(identifier.text))
    case .unlisted(let identifiers, let isPending):
      for identifier in identifiers {
        try connection.run(
          "DELETE FROM notifications WHERE identifier = ? AND pending = ?", .text(identifier.text), .flag(isPending))
      }
    case .forgotPerson: try forgetPerson(connection)
    case .floor(let revision): try connection.run("UPDATE device SET floor = ?", .text(revision.text))
    case .registration(let registration):
      try connection.run(
        "UPDATE registration SET registered = ?, environment = ?, settings = ?, categories = ?, person = ?, sign_out = ?",
        .flag(registration.isRegistered),
        .text(registration.environment?.rawValue), .bytes(registration.settings), .bytes(registration.categoriesFrame),
        .text(registration.person?.text), .text(registration.signOutRequest?.text))
    case .hello(let hello):
      try connection.run("UPDATE device SET settings = ?, categories = ?", .bytes(hello.settings), .bytes(hello.categoriesFrame))
    case .carriedOut(let place): try connection.run("DELETE FROM commands WHERE place = ?", .integer(place))
    case .badge(let number): try connection.run("UPDATE device SET badge = ?", .integer(Int64(number)))
    case .response(let response):
      let (frame, notification) = (response.frame, response.notification)
      try connection.run(
        """
        INSERT OR IGNORE INTO responses (response, receipt, identifier, action, user_text, at, dynamic, unsent, untold,
          notification_local, notification_at, notification_presentation, notification_frame, notification_changed, stage, locked, options)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .text(frame.response), .text(frame.receipt), .text(frame.identifier.text), .text(frame.action.text),
        .text(frame.userText), frame.at.map { .integer($0) } ?? .null, .flag(frame.isDynamic),
        .flag(response.isUnsent), .flag(response.isUntold), .flag(notification.isLocal), .integer(notification.takenAt),
        .integer(Int64(notification.presentation.rawValue)), .bytes(notification.frame.jsonBytes),
        .bytes(notification.changed?.jsonBytes), .integer(response.stage.rawValue), .flag(response.isLocked), .text(response.optionsText))
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

  /// Removes what belongs to the person who was signed in, also what other processes have asked for. Only the cluster still gets responses.
  private func forgetPerson(_ connection: SQLiteConnection) throws(DeviceError) {
    for statement in StateSchema.forgettingPerson { try connection.run(statement) }
    try connection.run("DELETE FROM commands WHERE kind <> ?", .text(StoredCommand.categories([]).kind))
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
    lock?.release()
    lock = nil
  }
}
