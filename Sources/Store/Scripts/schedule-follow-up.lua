-- Reads the state of a schedule that has a follow-up. Or notes that Kafka has the records that follow from this state.
--
-- KEYS: the target's schedules; the ended ones; the follow-ups of the partition; the bucket's guard.
-- ARGV: the identifier; the schedule's name among the follow-ups; the maximum number of ended schedules; now; then, if Kafka has the
--       records: the first HEAD bytes of the state, or nothing if there was none; `forget` to forget the schedule; the time of the next
--       follow-up, or nothing. All times are in milliseconds.
-- Answers {1, isDue} if it noted that, with isDue 1 if another schedule is to be forgotten now; else {0, state, since, isOldest, floor}:
-- the state, when it ended, and the floor, each empty if there is none; isOldest is 1 for the oldest of too many. {-2} if Redis has lost
-- the bucket.
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
