#include <sqlite3.h>

// SQLite's marker for bytes that it must copy is a cast, which Swift does not import.
static inline int carillon_sqlite_bind_copy(sqlite3_stmt *statement, int place, const void *bytes, sqlite3_uint64 count) { return sqlite3_bind_blob64(statement, place, bytes, count, SQLITE_TRANSIENT); }
