/// The tables of a device's database.
///
/// Names, texts and frames are BLOBs, which SQLite compares byte by byte. `place` orders the rows of a table by the time they were written.
enum StateSchema {
  /// The version of the tables, in the database's `user_version`.
  static var version: Int64 { Int64(steps.count) }
  /// Marks the file as a device's, in the database's `application_id`: "Cari".
  static let applicationID: Int64 = 0x4361_7269

  /// The statements that lead from each version to the next. A new file begins with none of them, at version 0.
  static let steps = [tables, registration, responses]

  /// What the person and the program have decided for the device.
  private static let registration = [
    """
    CREATE TABLE registration (
      only INTEGER PRIMARY KEY CHECK (only = 1), registered INTEGER NOT NULL, environment BLOB, settings BLOB, categories BLOB) STRICT
    """,
    "INSERT INTO registration VALUES (1, 0, NULL, NULL, NULL)",
  ]

  /// A response may be with a content extension, or wait for the unlocking: see ``StoredResponse``.
  private static let responses = [
    "ALTER TABLE responses ADD COLUMN stage INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE responses ADD COLUMN locked INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE responses ADD COLUMN options BLOB NOT NULL DEFAULT x''",
  ]

  private static let tables = [
    """
    CREATE TABLE device (
      only INTEGER PRIMARY KEY CHECK (only = 1), token BLOB NOT NULL, application BLOB NOT NULL, badge INTEGER NOT NULL,
      floor BLOB) STRICT
    """,
    "CREATE TABLE ids (place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, at INTEGER NOT NULL) STRICT",
    """
    CREATE TABLE revisions (
      place INTEGER PRIMARY KEY, identifier BLOB NOT NULL UNIQUE, revision BLOB NOT NULL, at INTEGER NOT NULL) STRICT
    """,
    """
    CREATE TABLE notifications (
      place INTEGER PRIMARY KEY, identifier BLOB NOT NULL, pending INTEGER NOT NULL, local INTEGER NOT NULL, at INTEGER NOT NULL,
      after INTEGER NOT NULL, presentation INTEGER NOT NULL, frame BLOB NOT NULL, UNIQUE (identifier, pending)) STRICT
    """,
    """
    CREATE TABLE responses (
      place INTEGER PRIMARY KEY, response BLOB NOT NULL UNIQUE, receipt BLOB NOT NULL, identifier BLOB NOT NULL, action BLOB NOT NULL,
      user_text BLOB, at INTEGER, dynamic INTEGER NOT NULL, unsent INTEGER NOT NULL, untold INTEGER NOT NULL,
      notification_local INTEGER NOT NULL, notification_at INTEGER NOT NULL, notification_presentation INTEGER NOT NULL,
      notification_frame BLOB NOT NULL) STRICT
    """,
  ]
}
