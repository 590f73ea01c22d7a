-- Lists the workers with the latest heartbeats. Changes nothing.
--
-- KEYS: the workers; their reports.
-- ARGV: how many at most; the bytes that a name may have; the bytes that a report may have.
-- Answers for each worker its name, the milliseconds since its last heartbeat, and its report, or an empty one if it is larger. Workers
-- with a longer name are left out.
-- include: now
local found, answer = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1, 'WITHSCORES'), {}
local count = 0
for i = 1, #found, 2 do
  local name, report = found[i], ''
  if #name <= tonumber(ARGV[2]) then
    if redis.call('HSTRLEN', KEYS[2], name) <= tonumber(ARGV[3]) then report = redis.call('HGET', KEYS[2], name) or '' end
    answer[3 * count + 1], answer[3 * count + 2] = name, math.floor(now - tonumber(found[i + 1]))
    answer[3 * count + 3], count = report, count + 1
  end
end
return answer
