-- Deletes entries that a full mailbox evicts, and notes for the device which revisions it has missed. Without revisions it only answers.
--
-- KEYS: the device's hash; its mailbox.
-- ARGV: the maximum of entries of a device that is away; of a connected one; then the revisions, oldest first.
-- Answers what to evict next: revision, entry without its payload, and so on, oldest first.
-- include: earlier
-- include: fields
-- include: layouts
-- include: entries
local PRESENT = 12
local maximum, connectedMaximum = tonumber(table.remove(ARGV, 1)), tonumber(table.remove(ARGV, 1))
if #ARGV > 0 and redis.call('HDEL', KEYS[2], unpack(ARGV)) == 0 then return {} end
local state = redis.call('HMGET', KEYS[1], 'g', 'p')
local gap, presence = state[1], state[2]
if #ARGV > 0 then
  redis.call('HSET', KEYS[1], 'g', (gap and #gap == 40 and string.sub(gap, 1, 20) or ARGV[1]) .. ARGV[#ARGV])
end
local over = redis.call('HLEN', KEYS[2]) - (presence and #presence == PRESENT and connectedMaximum or maximum)
if over <= 0 then return {} end
local found, newer = entries(KEYS[2], fields(KEYS[2], math.min(over, ANSWER_MAXIMUM)), over)
-- Entries of a newer program count, and stay: the next oldest ones are evicted.
if #found == 0 and newer > 0 then found = entries(KEYS[2], fields(KEYS[2]), over) end
return found
