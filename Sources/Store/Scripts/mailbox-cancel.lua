-- Deletes entries that a removal of all has canceled. Without revisions it only answers.
--
-- KEYS: the device's hash; its mailbox.
-- ARGV: the revisions.
-- Answers what to cancel next: revision, entry, revision, entry and so on, oldest first; at last how many fields are below the floor, and the
-- floor: revision and apns-id of the newest removal of all. An entry with a trigger is pending, and no removal touches it.
-- include: earlier
-- include: fields
-- include: entries
if #ARGV > 0 and redis.call('HDEL', KEYS[2], unpack(ARGV)) == 0 then return {} end
local kept = redis.call('HGET', KEYS[1], 'f')
if not kept or #kept ~= 64 then return {} end
local timestamp, partition, offset = struct.unpack('>I8I4I8', string.sub(kept, 29, 48))

-- Whether an entry has no trigger. The trigger follows four fields with a length of one byte, and the category.
local function isDelivered(entry)
  local place = 65
  for _ = 1, 4 do place = place + 1 + (string.byte(entry, place) or 0) end
  local high, low = string.byte(entry, place, place + 1)
  place = place + 2 + (high or 0) * 256 + (low or 0)
  high, low = string.byte(entry, place, place + 1)
  return (high or 0) + (low or 0) == 0
end

local below = {}
for _, field in ipairs(fields(KEYS[2])) do
  local isOlder = field[2] == partition and field[3] < offset
    or field[2] ~= partition and earlier(field[1], field[2], field[3], timestamp, partition, offset)
  if isOlder and #field[4] == 20 then below[#below + 1] = field end
end
local answer = entries(KEYS[2], below, #below, isDelivered)
answer[#answer + 1] = #below
answer[#answer + 1] = string.sub(kept, 29)
return answer
