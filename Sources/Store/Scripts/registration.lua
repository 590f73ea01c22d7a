-- Applies a registration, unless one from a later record stands.
--
-- For the same owner the earliest `since` counts, also from an earlier record that comes later. Unreadable values of the device count as
-- missing, and are overwritten.
--
-- KEYS: the device's hash; its mailbox; the markers of its bucket.
-- ARGV: owner 24, or nothing for an unregistration; registration 20 (see `Keys`); milliseconds that an unregistered device is remembered;
--       the keys of the sets that it belongs to, with line feeds between them, or nothing; its locale, or nothing;
--       its time zone, or nothing.
-- Answers {1, former owner, former sets}, {0} if a later record was applied, or {-2} if Redis has lost the bucket.
if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
local OWNER, STAMP, LARGEST = 24, 20, 2 ^ 53
local state = redis.pcall('HMGET', KEYS[1], 'u', 'r', 'a', 'f')
if state.err then
  if not string.find(state.err, 'WRONGTYPE', 1, true) then return state end
  redis.call('DEL', KEYS[1])
  state = {}
end
local owner, former = ARGV[1], state[1] and (#state[1] == OWNER or #state[1] == OWNER + 20) and string.sub(state[1], 1, OWNER) or ''
-- Its removals keep their effect while the device has the same application.
local bars = state[4] or ''
local isBarred = (#bars == 28 or #bars == 64) and string.sub(bars, 1, 8) == string.sub(owner, 17)
local horizon = isBarred and string.sub(bars, 9, 28) or ''
local function isSame(a, b) return #a == #b and string.sub(a, 1, 8) == string.sub(b, 1, 8) and string.sub(a, 17) == string.sub(b, 17) end
local function since(a) return struct.unpack('>I8', a, 9) end
if state[2] and #state[2] == STAMP then
  local knownOffset = struct.unpack('>I8', state[2], 13)
  local offset = struct.unpack('>I8', ARGV[2], 13)
  if knownOffset > offset and knownOffset < LARGEST then
    if owner ~= '' and isSame(owner, former) and since(owner) < since(former) then
      redis.call('HSET', KEYS[1], 'u', owner .. horizon)
    end
    return {0}
  end
end
if owner == '' then
  redis.call('HSET', KEYS[1], 'r', ARGV[2])
  redis.call('HDEL', KEYS[1], 'u', 'a', 'p', 'g', 'l', 'z')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  return {1, former, state[3] or ''}
end
if isSame(owner, former) and since(former) < since(owner) then owner = former end
redis.call('HSET', KEYS[1], 'u', owner .. horizon, 'r', ARGV[2], 'a', ARGV[4])
for field, value in pairs({l = ARGV[5], z = ARGV[6]}) do
  if value ~= '' then redis.call('HSET', KEYS[1], field, value) else redis.call('HDEL', KEYS[1], field) end
end
redis.call('PERSIST', KEYS[1])
return {1, former, state[3] or ''}
