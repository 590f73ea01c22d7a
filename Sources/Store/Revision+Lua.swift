import Notifications

/// Which of two revisions is the newer one: for the scripts here, and for Swift in `Revision`.
extension Revision {
  /// A function of Lua: whether the first of two revisions is older, each given as the time, partition and offset that
  /// `struct.unpack('>I8I4I8', …)` reads. Numbers compare alike under any locale of the server; strings do not.
  static let luaEarlier = """
    local function earlier(t, p, o, t2, p2, o2)
      if t ~= t2 then return t < t2 end
      if p ~= p2 then return p < p2 end
      return o < o2
    end
    """
}
