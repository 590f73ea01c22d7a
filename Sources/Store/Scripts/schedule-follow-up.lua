-- Reads the state of a schedule that is to be followed up after its end, or notes that Kafka has what follows from this state.
--
-- KEYS: the target's schedules; which of them have ended; the follow-ups of the partition; what must be there where the bucket is used.
-- ARGV: the identifier; its name among the follow-ups; how many ended ones are remembered; now; and where Kafka has what follows: the first
--       HEAD bytes of the state, or nothing where there was none; `forget` where it is forgotten now; when it is followed up again, or
--       nothing. All times are in milliseconds.
-- Answers {1, isDue} where that is noted, and isDue is 1 if the next one is to be forgotten; else {0, state, since, isOldest, floor}: the
-- state, since when it has ended, and the floor, each empty where there is none, and 1 where it is the oldest of too many. {-2} where Redis
-- has lost the bucket.
local HEAD = 46
local call = redis.call
local schedules, ended, followUps, identifier, name, maximum = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], tonumber(ARGV[3])
if call('EXISTS', KEYS[4]) == 0 then return {-2} end
local found = call('HMGET', schedules, identifier, '')
local state = found[1] or ''
local function oldestOfTooMany()
  if call('ZCARD', ended) > maximum then return call('ZRANGE', ended, 0, 0)[1] end
end
if ARGV[5] and string.sub(state, 1, HEAD) == ARGV[5] then
  if ARGV[7] == '' then call('ZREM', followUps, name) else call('ZADD', followUps, ARGV[7], name) end
  if ARGV[6] ~= 'forget' then return {1, 0} end
  call('HDEL', schedules, identifier)
  call('ZREM', ended, identifier)
  local oldest = oldestOfTooMany()
  if not oldest then return {1, 0} end
  call('ZADD', followUps, ARGV[4], string.sub(name, 1, #name - #identifier) .. oldest)
  return {1, 1}
end
local since = string.match(call('ZSCORE', ended, identifier) or '', '^%d*')
return {0, state, since, oldestOfTooMany() == identifier and 1 or 0, found[2] or ''}
