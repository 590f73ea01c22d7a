-- The least that Redis must do for a request with one device: refuse a revision that is not newer, store the notification, and answer where
-- the device is connected.
--
-- KEYS[1]  the device's hash
-- ARGV     identifier, revision, notification, milliseconds to keep the hash
local hash, identifier, revision, notification, lifetime = KEYS[1], unpack(ARGV)
local state = redis.call('HMGET', hash, 'revision:' .. identifier, 'connected')
if tonumber(state[1] or -1) >= tonumber(revision) then
  return {0, state[2]}
end
redis.call('HSET', hash, 'revision:' .. identifier, revision, 'notification:' .. identifier, notification)
redis.call('PEXPIRE', hash, lifetime)
return {1, state[2]}
