-- Repeats the hello of a session: restores an absent presence, and finds another session's.
--
-- KEYS: the device's hash; its mailbox; the markers of their bucket.
-- ARGV: presence 12.
-- Answers {1, entries in the mailbox, registration}, {0} if another session has the presence, {-1, registration} if the device is not
-- registered any more or its owner cannot be read, or {-2} if Redis has lost the bucket.
if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
local state = redis.pcall('HMGET', KEYS[1], 'p', 'u', 'r')
if state.err then return string.find(state.err, 'WRONGTYPE', 1, true) and {-1, ''} or state end
local presence, owner, registration = state[1], state[2], state[3]
if not owner or #owner ~= 24 and #owner ~= 44 then return {-1, registration or ''} end
if presence ~= ARGV[1] then
  if presence and #presence == #ARGV[1] then return {0} end
  redis.call('HSET', KEYS[1], 'p', ARGV[1])
end
redis.call('PERSIST', KEYS[2])
return {1, redis.call('HLEN', KEYS[2]), registration or ''}
