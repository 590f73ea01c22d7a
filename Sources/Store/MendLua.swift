/// What scripts do about a key that holds something else than it should, where nothing is lost with it, in Lua.
enum MendLua {
  /// A function of Lua: removes what lies under a key and is of another type; answers 1 where it has, else 0.
  static let mend = """
    local function mend(key, kind)
      local found = redis.call('TYPE', key)['ok']
      if found == kind or found == 'none' then return 0 end
      redis.call('DEL', key)
      return 1
    end
    """
}
