-- Deletes entries that a removal of all has canceled. Without revisions it only answers.
--
-- KEYS: the device's hash; its mailbox.
-- ARGV: the revisions.
-- Answers what to cancel next, in no order: revision, entry without its payload, and so on; at last how many fields are below the floor, and
-- the floor (revision and apns-id of the newest removal of all), and how many entries of a newer program were left out. An entry with a
-- trigger is pending, and no removal touches it.
-- include: newness
-- include: layouts
-- include: entries
if #ARGV > 0 and redis.call('HDEL', KEYS[2], unpack(ARGV)) == 0 then return {} end
local state = redis.call('HMGET', KEYS[1], 'u', 'f')
local owner, kept = state[1] or '', state[2] or ''
-- Another application's removal cancels nothing of this one.
if #kept ~= 64 or string.sub(kept, 1, 8) ~= string.sub(owner, 17, 24) then return {} end
local floorTimestamp, floorPartition, floorOffset = struct.unpack('>I8I4I8', string.sub(kept, 29, 48))

local below, names = {}, redis.call('HKEYS', KEYS[2])
for i = 1, #names do
  if #names[i] == 20 then
    local timestamp, partition, offset = struct.unpack('>I8I4I8', names[i])
    if isOlder(timestamp, partition, offset, floorTimestamp, floorPartition, floorOffset) then
      below[#below + 1] = {timestamp, partition, offset, names[i]}
    end
  end
end
local answer, newer = entries(KEYS[2], below, #below, isDelivered)
answer[#answer + 1] = #below
answer[#answer + 1] = string.sub(kept, 29)
answer[#answer + 1] = newer
return answer
