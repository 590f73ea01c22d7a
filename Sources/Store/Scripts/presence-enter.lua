-- Takes the presence for a new session. An unreadable registration counts as missing.
--
-- KEYS: the device's hash; its mailbox; the markers of their bucket.
-- ARGV: presence 12; digest of the registration 8.
-- Answers {1, former presence, owner, gap, registration}, {0, owner} if Redis has another registration than the device sent, or {-2} if
-- Redis has lost the bucket.
if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
local state = redis.pcall('HMGET', KEYS[1], 'p', 'u', 'r', 'g')
if state.err then return string.find(state.err, 'WRONGTYPE', 1, true) and {0, ''} or state end
local presence, owner, registration, gap = state[1], state[2], state[3], state[4]
if not owner or #owner ~= 24 and #owner ~= 44 or not registration or #registration ~= 20 or string.sub(registration, 1, 8) ~= ARGV[2] then
  return {0, owner or ''}
end
redis.call('HSET', KEYS[1], 'p', ARGV[1])
redis.call('PERSIST', KEYS[2])
return {1, presence or '', string.sub(owner, 1, 24), gap or '', registration}
