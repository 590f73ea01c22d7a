import Notifications

/// When a mailbox overflows, and which of its entries are too many, in Lua: what the scripts that write to mailboxes and read them share.
enum MailboxOverflowLua {
  /// Entries that one eviction takes at most.
  static let evictionMaximum = 64

  /// A function of Lua: the fields of a mailbox, oldest first, each with its name as the fourth member.
  ///
  /// What is no revision was put there by somebody else. It stands before all revisions, so that whoever reads the oldest fields finds it and
  /// can remove it.
  static let fields = """
    \(Revision.luaEarlier)
    local function fields(box)
      local all = redis.call('HKEYS', box)
      for i = 1, #all do
        local name = all[i]
        if #name == 20 then
          local t, p, o = struct.unpack('>I8I4I8', name)
          all[i] = {t, p, o, name}
        else
          all[i] = {-1, 0, 0, name}
        end
      end
      table.sort(all, function (a, b) return earlier(a[1], a[2], a[3], b[1], b[2], b[3]) end)
      return all
    end
    """

  /// A function of Lua: the oldest entries of a mailbox beyond its maximum, as many as one eviction takes: revision, entry, revision, entry
  /// and so on.
  static let overflow = """
    \(fields)
    local function overflow(box, maximum)
      local over, oldest = math.min(redis.call('HLEN', box) - maximum, \(evictionMaximum)), {}
      if over <= 0 then return oldest end
      local all = fields(box)
      for i = 1, over do
        oldest[2 * i - 1] = all[i][4]
        oldest[2 * i] = redis.call('HGET', box, all[i][4])
      end
      return oldest
    end
    """

  /// A function of Lua that looks whether a mailbox has more than its maximum, and says so once in a call: the eviction begins with the first
  /// answer. It needs the locals `call`, `maximum` and `answer`, to which it appends the number of the request and the entries.
  static let found = """
    local overflowed = {}
    local function findOverflow(box, number)
      if overflowed[box] or call('HLEN', box) <= maximum then return end
      overflowed[box] = true
      answer[#answer + 1] = number
      answer[#answer + 1] = overflow(box, maximum)
    end
    """
}
