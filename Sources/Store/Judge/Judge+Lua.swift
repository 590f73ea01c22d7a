/// What more than one script asks of a device's hash, as functions of Lua. Each needs `find`, `sub` and `unpacked` as locals.
enum JudgeLua {
  /// `refusal(owner, terms)`: the verdict where a device gets nothing of what the terms say, or nil.
  static let refusal = """
    local WRONG_USER, UNREGISTERED, WRONG_APPLICATION = 4, 5, 6
    local ANYBODY, JOINED_LATE = string.rep('\\0', 8), 5000
    local function refusal(owner, terms)
      if not owner then return UNREGISTERED end
      if not find(owner, sub(terms, 1, 8), 17, true) then return WRONG_APPLICATION end
      if #terms > 8 then
        local user = sub(terms, 9, 16)
        if user ~= ANYBODY and (sub(owner, 1, 8) ~= user or unpacked('>I8', owner, 9) > unpacked('>I8', terms, 17) + JOINED_LATE) then
          return WRONG_USER
        end
      end
    end
    """

  /// `place(w, id)`: where an apns-id stands in the window of recent ids, or nil.
  static let place = """
    local function place(w, id)
      local at = w and find(w, sub(id, 1, 8), 7, true)
      while at and (at - 7) % 12 ~= 0 do at = find(w, sub(id, 1, 8), at + 1, true) end
      return at
    end
    """
}
