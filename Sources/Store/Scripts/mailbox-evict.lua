-- Deletes entries that a full mailbox evicts, and notes for the device which revisions it has missed.
--
-- KEYS: the device's hash; its mailbox.
-- ARGV: the maximum of entries; then the revisions, oldest first.
-- Answers what to evict next: revision, entry, revision, entry and so on, oldest first.
-- include: earlier
-- include: fields
-- include: overflow
local maximum = tonumber(table.remove(ARGV, 1))
if redis.call('HDEL', KEYS[2], unpack(ARGV)) == 0 then return {} end
local gap = redis.call('HGET', KEYS[1], 'g')
redis.call('HSET', KEYS[1], 'g', (gap and #gap == 40 and string.sub(gap, 1, 20) or ARGV[1]) .. ARGV[#ARGV])
return overflow(KEYS[2], maximum)
