-- The fields of a mailbox, oldest first: each as the numbers of its revision, and its name as the fourth member.
--
-- A field that is no revision was not written by Carillon. Such fields come before all revisions, so that the reader of the oldest fields
-- finds them and can remove them. Needs the piece `earlier`.
local function fields(mailbox)
  local all = redis.call('HKEYS', mailbox)
  for i = 1, #all do
    local name = all[i]
    if #name == 20 then
      local timestamp, partition, offset = struct.unpack('>I8I4I8', name)
      all[i] = {timestamp, partition, offset, name}
    else
      all[i] = {-1, 0, 0, name}
    end
  end
  table.sort(all, function (a, b) return earlier(a[1], a[2], a[3], b[1], b[2], b[3]) end)
  return all
end
