-- Removes a gap that the device was notified of, if neither the gap nor the session has changed.
--
-- It does not look for the markers: a lost bucket has no presence of this session.
--
-- KEYS: the device's hash; its mailbox; the markers of their bucket.
-- ARGV: presence 12; gap 40.
-- Answers how many fields it has removed.
local state = redis.call('HMGET', KEYS[1], 'p', 'g')
if state[1] ~= ARGV[1] or state[2] ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], 'g')
