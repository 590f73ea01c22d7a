-- The entries of a mailbox below a floor, oldest first, at most as many as one cancellation takes: revision, entry, revision, entry and so
-- on. An entry with a trigger is pending, and no removal touches it. Needs the pieces `earlier` and `fields`.
local CANCELLATION_MAXIMUM = 64

-- Whether an entry has a trigger. The trigger follows four fields with a length of one byte, and the category.
local function isPending(entry)
  local place = 65
  for _ = 1, 4 do place = place + 1 + (string.byte(entry, place) or 0) end
  local high, low = string.byte(entry, place, place + 1)
  place = place + 2 + (high or 0) * 256 + (low or 0)
  high, low = string.byte(entry, place, place + 1)
  return (high or 0) + (low or 0) > 0
end

local function below(mailbox, floor)
  local timestamp, partition, offset = struct.unpack('>I8I4I8', floor)
  local all, found = fields(mailbox), {}
  for i = 1, #all do
    local field = all[i]
    local isOlder = field[2] == partition and field[3] < offset
      or field[2] ~= partition and earlier(field[1], field[2], field[3], timestamp, partition, offset)
    if #field[4] == 20 and isOlder then
      local entry = redis.call('HGET', mailbox, field[4])
      if entry and not isPending(entry) then
        found[#found + 1] = field[4]
        found[#found + 1] = entry
        if #found == 2 * CANCELLATION_MAXIMUM then break end
      end
    end
  end
  return found
end
