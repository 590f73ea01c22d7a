-- Notes a request that cancels all pending schedules of a target, and lists the target's schedules.
--
-- KEYS: the target's schedules; the pending ones; the bucket's guard.
-- ARGV: the floor: the request's revision 20, its apns-id 16; how long Redis keeps it when nothing is pending, in milliseconds.
-- Answers {identifiers}, or {-2} if Redis has lost the bucket.
-- include: newness
local call = redis.call
if call('EXISTS', KEYS[3]) == 0 then return {-2} end
local known = call('HGET', KEYS[1], '')
local isNewer = not known or #known ~= 36
if not isNewer then
  local timestamp, partition, offset = struct.unpack('>I8I4I8', ARGV[1])
  local knownTimestamp, knownPartition, knownOffset = struct.unpack('>I8I4I8', known)
  isNewer = isOlder(knownTimestamp, knownPartition, knownOffset, timestamp, partition, offset)
end
if isNewer then
  call('HSET', KEYS[1], '', ARGV[1])
  if call('ZCARD', KEYS[2]) == 0 then call('PEXPIRE', KEYS[1], ARGV[2]) end
end
return {call('HKEYS', KEYS[1])}
