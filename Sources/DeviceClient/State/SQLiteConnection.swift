internal import CSQLite

/// A value for a parameter of a statement.
enum SQLiteValue {
  case integer(Int64)
  case bytes([UInt8])
  case null

  static func flag(_ flag: Bool) -> SQLiteValue { .integer(flag ? 1 : 0) }

  /// The UTF-8 of a text. Texts from outside are stored as bytes, so that SQLite compares bytes.
  static func text(_ text: String) -> SQLiteValue { .bytes(Array(text.utf8)) }

  /// A text, or NULL.
  static func text(_ text: String?) -> SQLiteValue { text.map { .text($0) } ?? .null }

  /// Bytes, or NULL.
  static func bytes(_ bytes: [UInt8]?) -> SQLiteValue { bytes.map { .bytes($0) } ?? .null }
}

/// An open SQLite database. It blocks, and belongs to the thread that made it.
final class SQLiteConnection {
  private let path: String
  private let file: FileIdentity
  private let handle: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]

  /// Opens a file, which exists and has one name.
  ///
  /// SQLite's log lies beside one name. By another one the file lacks what the log has, and the log would later be written over it.
  ///
  /// - Parameter busyMilliseconds: how long a statement waits for the lock of another process.
  init(path: String, busyMilliseconds: Int32) throws(DeviceError) {
    guard let file = FileIdentity(path: path) else { throw DeviceError(path, sqlite: SQLITE_CANTOPEN, "it is missing") }
    guard file.links == 1 else {
      throw DeviceError(
        .stateUnusable,
        "the state file \(path) has \(file.links) names (hard links), and its log lies beside one of them: remove the others")
    }
    OpenFiles.opened(file)
    var opened: OpaquePointer?
    // SQLite takes names that begin with a colon for databases in memory.
    let name = path.utf8.first == UInt8(ascii: ":") ? "./" + path : path
    let code = sqlite3_open_v2(name, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      OpenFiles.closed(file)
      throw DeviceError(path, sqlite: code, String(cString: sqlite3_errstr(code)))
    }
    (self.path, self.file, handle) = (path, file, opened)
    sqlite3_extended_result_codes(opened, 1)
    sqlite3_busy_timeout(opened, busyMilliseconds)
  }

  /// Closes the database; no call may follow.
  func close() {
    for statement in statements.values { sqlite3_finalize(statement) }
    statements = [:]
    sqlite3_close_v2(handle)
    OpenFiles.closed(file)
  }

  /// Whether the file system lets this process only read the file.
  var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  // MARK: Statements

  /// Executes a statement, and ignores its rows.
  func run(_ sql: String, _ values: SQLiteValue...) throws(DeviceError) {
    try each(sql, values) { _ in }
  }

  /// The integer in the first column of the first row; nil without one.
  func integer(_ sql: String) throws(DeviceError) -> Int64? {
    var found: Int64?
    try each(sql, []) { row in found = found ?? row.integer(0) }
    return found
  }

  /// The text in the first column of the first row; empty without one.
  func text(_ sql: String) throws(DeviceError) -> String {
    var found: String?
    try each(sql, []) { row in found = found ?? String(decoding: row.bytes(0), as: UTF8.self) }
    return found ?? ""
  }

  /// Calls `body` with each row of a query.
  func rows(_ sql: String, _ values: SQLiteValue..., body: (SQLiteRow) -> Void) throws(DeviceError) { try each(sql, values, body) }

  /// Executes `body`, which reads one state of the file.
  func reading(_ body: () throws(DeviceError) -> Void) throws(DeviceError) {
    try run("BEGIN")
    defer { try? run("ROLLBACK") }
    try body()
  }

  /// Executes `body` in a transaction, which has the write lock from its start. An error undoes all of it.
  func transaction(_ body: () throws(DeviceError) -> Void) throws(DeviceError) {
    try run("BEGIN IMMEDIATE")
    do throws(DeviceError) {
      try body()
      try run("COMMIT")
    } catch {
      // After some errors SQLite has undone it already.
      if sqlite3_get_autocommit(handle) == 0 { try? run("ROLLBACK") }
      throw error
    }
  }

  private func each(_ sql: String, _ values: [SQLiteValue], _ body: (SQLiteRow) -> Void) throws(DeviceError) {
    let statement = try prepared(sql)
    // A statement that is not reset keeps its transaction open.
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, value) in values.enumerated() {
      let place = Int32(index + 1)
      let code =
        switch value {
        case .integer(let integer): sqlite3_bind_int64(statement, place, integer)
        case .bytes(let bytes) where bytes.isEmpty: sqlite3_bind_zeroblob(statement, place, 0)
        case .bytes(let bytes): bytes.withUnsafeBytes { carillon_sqlite_bind_copy(statement, place, $0.baseAddress, UInt64($0.count)) }
        case .null: sqlite3_bind_null(statement, place)
        }
      guard code == SQLITE_OK else { throw failure(code) }
    }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: body(SQLiteRow(statement: statement))
      case SQLITE_DONE: return
      case let code: throw failure(code)
      }
    }
  }

  private func prepared(_ sql: String) throws(DeviceError) -> OpaquePointer {
    if let statement = statements[sql] { return statement }
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    statements[sql] = statement
    return statement
  }

  private func failure(_ code: Int32) -> DeviceError { DeviceError(path, sqlite: code, String(cString: sqlite3_errmsg(handle))) }
}

/// A row of a query, valid until the next.
struct SQLiteRow {
  fileprivate let statement: OpaquePointer

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

  func bytes(_ column: Int32) -> [UInt8] {
    let address = sqlite3_column_blob(statement, column)
    return Array(UnsafeRawBufferPointer(start: address, count: Int(sqlite3_column_bytes(statement, column))))
  }

  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }
}

extension DeviceError {
  /// What a failure of SQLite means for the person who runs the device.
  ///
  /// - Parameters:
  ///   - code: SQLite's extended result code.
  ///   - message: SQLite's own words.
  fileprivate init(_ path: String, sqlite code: Int32, _ message: String) {
    switch code & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED:
      self.init(.stateInUse, "the state file \(path) is kept locked by another process: end that process, and try again")
    case SQLITE_FULL:
      self.init(.stateFull, "the state file \(path) cannot grow: the disk is full, or its limit is reached. Make room, and try again")
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_CANTOPEN, SQLITE_AUTH:
      self.init(
        .stateReadOnly, "the state file \(path) cannot be written (\(message)): change the permissions of the file and its folder")
    case SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_FORMAT: self = .damaged(path, message)
    default: self.init(.stateUnusable, "the state file \(path) cannot be read or written: \(message) (SQLite's code \(code))")
    }
  }

  /// The error of a file that is not a sound database.
  static func damaged(_ path: String, _ reason: String) -> DeviceError {
    DeviceError(
      .stateDamaged,
      "the state file \(path) is damaged, or is not a device's: \(reason). It is left as it is: restore a copy, or name another file")
  }
}
