-- Notes that Kafka has the end of a schedule and the events about it, if the schedule still has that state. When no schedule of the
-- application is pending and all ends are settled, it removes the application from the target's set.
--
-- It must not do so earlier: a request that is retried must find the schedule that it ended.
--
-- KEYS: the target's schedules; the pending ones; the ended ones; the applications that have pending schedules for the target; the bucket's
--       guard.
-- ARGV: the identifier; the first HEAD bytes of the state that Kafka has; the application.
-- Answers {state}, which is empty if there is none, or {-2} if Redis has lost the bucket.
local HEAD, PAGE = 46, 64
local call = redis.call
if call('EXISTS', KEYS[5]) == 0 then return {-2} end
local state = call('HGET', KEYS[1], ARGV[1]) or ''
if string.sub(state, 1, HEAD) ~= ARGV[2] then return {state} end
local since = call('ZSCORE', KEYS[3], ARGV[1])
-- A score with half a millisecond means that the end is not settled.
if since then call('ZADD', KEYS[3], string.match(since, '^%d+'), ARGV[1]) end
if call('ZCARD', KEYS[2]) > 0 or call('HEXISTS', KEYS[4], ARGV[3]) == 0 then return {state} end
-- Those that ended last are most likely not settled.
for first = 0, call('ZCARD', KEYS[3]) - 1, PAGE do
  local ended = call('ZREVRANGE', KEYS[3], first, first + PAGE - 1, 'WITHSCORES')
  for i = 2, #ended, 2 do
    if string.find(ended[i], '.', 1, true) then return {state} end
  end
end
call('HDEL', KEYS[4], ARGV[3])
return {state}
