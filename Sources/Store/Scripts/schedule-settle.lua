-- Notes that Kafka has the end of a schedule, and all that was told of it, where the state is the one that Kafka has. Forgets that the target
-- has pending ones, where that is over and all the ends of the application are settled.
--
-- Not before: a request that has ended one finds its schedule once more when it is done again.
--
-- KEYS: the target's schedules; which of them are pending; which have ended; the applications that have pending ones for the target; what
--       must be there where the bucket is used.
-- ARGV: the identifier; the first HEAD bytes of the state that Kafka has; the application.
-- Answers {state}, which is empty where there is none, or {-2} where Redis has lost the bucket.
local HEAD = 46
local call = redis.call
if call('EXISTS', KEYS[5]) == 0 then return {-2} end
local state = call('HGET', KEYS[1], ARGV[1]) or ''
if string.sub(state, 1, HEAD) ~= ARGV[2] then return {state} end
local since = call('ZSCORE', KEYS[3], ARGV[1])
-- Half a millisecond stands for an end that is not settled.
if since then call('ZADD', KEYS[3], string.match(since, '^%d+'), ARGV[1]) end
if call('ZCARD', KEYS[2]) > 0 then return {state} end
local ended = call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
for i = 2, #ended, 2 do
  if string.find(ended[i], '.', 1, true) then return {state} end
end
call('SREM', KEYS[4], ARGV[3])
return {state}
