-- Removes a gap that the device was told of, if it is still the same gap and the device is still this session's.
--
-- It does not look for the markers: a bucket that is lost has nothing that is still this session's.
--
-- KEYS: the device's hash; its mailbox; the markers of their bucket.
-- ARGV: presence 12; gap 40.
-- Answers how many fields it has removed.
local state = redis.call('HMGET', KEYS[1], 'p', 'g')
if state[1] ~= ARGV[1] or state[2] ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], 'g')
