/// The tables of a device's database.
///
/// Names, texts and frames are BLOBs, which SQLite compares byte by byte. `place` orders the rows of a table by the time they were written.
enum StateSchema {
  /// The version of the tables, in the database's `user_version`.
  static let version = Int64(Layout.stateFile.newest)
  /// Stands in the file itself in place of the version while SQLite's log has later changes.
  static let needingLog: Int64 = 0
  /// About how many bytes of pages a change writes.
  static let pageBytes = 8 << 10
  /// About how many bytes are written between two moves of the log into the file.
  static let logBytes = 4 << 20
  /// Marks the file as a device's, in the database's `application_id`: "Cari".
  static let applicationID: Int64 = 0x4361_7269

  /// The statements that make the tables.
  static let tables = [
    """
    CREATE TABLE device (
      only INTEGER PRIMARY KEY CHECK (only = 1), token BLOB NOT NULL, application BLOB NOT NULL, badge INTEGER NOT NULL,
      floor BLOB, settings BLOB, categories BLOB) STRICT
    """,
    "CREATE TABLE ids (place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, at INTEGER NOT NULL) STRICT",
    """
    CREATE TABLE revisions (
      place INTEGER PRIMARY KEY, identifier BLOB NOT NULL UNIQUE, revision BLOB NOT NULL, at INTEGER NOT NULL) STRICT
    """,
    """
    CREATE TABLE notifications (
      place INTEGER PRIMARY KEY, identifier BLOB NOT NULL, pending INTEGER NOT NULL, local INTEGER NOT NULL, at INTEGER NOT NULL,
      after INTEGER NOT NULL, presentation INTEGER NOT NULL, frame BLOB NOT NULL, changed BLOB, UNIQUE (identifier, pending)) STRICT
    """,
    // What waits for the program's service extension, and whether that has been given it.
    """
    CREATE TABLE extending (
      place INTEGER PRIMARY KEY, identifier BLOB NOT NULL UNIQUE, at INTEGER NOT NULL, begun INTEGER NOT NULL, frame BLOB NOT NULL) STRICT
    """,
    """
    CREATE TABLE responses (
      place INTEGER PRIMARY KEY, response BLOB NOT NULL UNIQUE, receipt BLOB NOT NULL, identifier BLOB NOT NULL, action BLOB NOT NULL,
      user_text BLOB, at INTEGER, dynamic INTEGER NOT NULL, unsent INTEGER NOT NULL, untold INTEGER NOT NULL,
      notification_local INTEGER NOT NULL, notification_at INTEGER NOT NULL, notification_presentation INTEGER NOT NULL,
      notification_frame BLOB NOT NULL, notification_changed BLOB, stage INTEGER NOT NULL, locked INTEGER NOT NULL, options BLOB NOT NULL) STRICT
    """,
    // What other processes ask of the device. A place is never used again, so that each command is done once.
    """
    CREATE TABLE commands (
      place INTEGER PRIMARY KEY AUTOINCREMENT, kind BLOB NOT NULL, at INTEGER NOT NULL, value BLOB NOT NULL) STRICT
    """,
    // What the person and the program have decided for the device.
    """
    CREATE TABLE registration (
      only INTEGER PRIMARY KEY CHECK (only = 1), registered INTEGER NOT NULL, environment BLOB, settings BLOB, categories BLOB,
      person BLOB, sign_out BLOB) STRICT
    """,
    "INSERT INTO registration VALUES (1, 0, NULL, NULL, NULL, NULL, NULL)",
  ]

  /// The clock of time intervals, which a file of an earlier version lacks.
  static let clock =
    "CREATE TABLE IF NOT EXISTS clock (only INTEGER PRIMARY KEY CHECK (only = 1), boot BLOB NOT NULL, offset INTEGER NOT NULL) STRICT"

  /// The statements that remove what belongs to the person.
  static let forgettingPerson = [
    "DELETE FROM notifications", "DELETE FROM extending", "DELETE FROM responses WHERE locked = 1 OR unsent = 0",
    "UPDATE responses SET untold = 0", "UPDATE device SET badge = 0",
  ]
}
