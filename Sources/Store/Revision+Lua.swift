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

  /// An expression of Lua: whether a request with the revision `t`, `p`, `o` is stale where `t0`, `p0`, `o0` is known. In one partition the
  /// offset decides, whatever the broker's clock has said; the function that it uses is ``luaEarlier``.
  static let luaIsStale = "p == p0 and o < o0 or p ~= p0 and earlier(t, p, o, t0, p0, o0)"
}
