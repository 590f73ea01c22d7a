/// What more than one script asks of a device's hash, in Lua. Each needs `find`, `sub` and `unpacked` as locals.
enum JudgeLua {
  /// The format of a request's head, by which `unpacked` takes it apart:
  ///
  /// | bytes | what |
  /// |---|---|
  /// | 8 | hash of the apns-id |
  /// | 4 | hash of its source |
  /// | 1 | why it comes again: 0 it does not, 1 a replay, 2 a redrive, 3 a redrive of what the device has no outcome of |
  /// | 20 | revision: time 8, partition 4, offset 8 |
  /// | 1, then so many | terms: hash of the application 8; for a person also hash of the user 8, time of the record 8; where a removal names a notification without collapse id these two, or zeros, and its apns-id 16 |
  /// | 1, then so many | `c` and the collapse id, or nothing |
  static let head = "'>c8c4Bc20Bc0Bc0'"

  /// What `refused` needs.
  static let refusal = """
    local WRONG_USER, UNREGISTERED, WRONG_APPLICATION = 4, 5, 6
    local ANYBODY, JOINED_LATE = string.rep('\\0', 8), 5000
    local function isAnothers(owner, terms)
      local user = sub(terms, 9, 16)
      return user ~= ANYBODY and (sub(owner, 1, 8) ~= user or unpacked('>I8', owner, 9) > unpacked('>I8', terms, 17) + JOINED_LATE)
    end
    """

  /// An expression: the verdict where a device gets nothing of what the terms say, or something false.
  ///
  /// Needs the locals `owner`, `terms`, `application` (its hash) and `isForPerson` (whether the terms go on behind it). No function, for it is
  /// asked for each request.
  static let refused = """
    not owner and UNREGISTERED or not find(owner, application, 17, true) and WRONG_APPLICATION
        or isForPerson and isAnothers(owner, terms) and WRONG_USER
    """

  /// `placed(w, hash, at)`: where the hash of an apns-id stands in the window of recent ids, or nil; `at` is where these bytes are found first.
  static let placed = """
    local function placed(w, hash, at)
      while at and (at - 7) % 12 ~= 0 do at = find(w, hash, at + 1, true) end
      return at
    end
    """
}
