/// What the scripts of both stages have in common that read a mailbox.
public enum MailboxScript {
  /// A function of Lua: the fields of a mailbox, oldest first, each with its name as the fourth member.
  ///
  /// What is no revision was put there by somebody else. It stands before all revisions, so that whoever reads the oldest fields finds it and
  /// can remove it.
  public static let fields = """
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
      table.sort(all, function (a, b)
        if a[1] ~= b[1] then return a[1] < b[1] end
        if a[2] ~= b[2] then return a[2] < b[2] end
        return a[3] < b[3]
      end)
      return all
    end
    """
}
