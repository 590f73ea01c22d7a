-- The fields of a mailbox, oldest first: each as the numbers of its revision, and its name as the fourth member.
--
-- What is no revision was put there by somebody else. It stands before all revisions, so that the reader of the oldest fields finds it and
-- can remove it. Needs the piece `earlier`.
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
