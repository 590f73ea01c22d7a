-- The fields of a mailbox, oldest first: each as the numbers of its revision, and its name as the fourth member. With `count`, only
-- at least so many of the oldest ones: sorting all by the whole revision is most of what a large mailbox costs.
--
-- A field that is no revision was not written by Carillon. Such fields come before all revisions, so that the reader of the oldest fields
-- finds them and can remove them. Needs the piece `earlier`.
local function fields(mailbox, count)
  local all, times, latest = redis.call('HKEYS', mailbox), {}, math.huge
  for i = 1, #all do times[i] = #all[i] == 20 and struct.unpack('>I8', all[i]) or -1 end
  if count and count < #all then
    local sorted = {}
    for i = 1, #times do sorted[i] = times[i] end
    table.sort(sorted)
    latest = sorted[count]
  end
  local found = {}
  for i = 1, #all do
    if times[i] <= latest then
      local partition, offset = 0, 0
      if times[i] >= 0 then partition, offset = struct.unpack('>I4I8', all[i], 9) end
      found[#found + 1] = {times[i], partition, offset, all[i]}
    end
  end
  table.sort(found, function (a, b) return earlier(a[1], a[2], a[3], b[1], b[2], b[3]) end)
  return found
end
