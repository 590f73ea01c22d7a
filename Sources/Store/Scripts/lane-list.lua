-- Lists the lanes, and for how long each has been silent. Changes nothing.
--
-- KEYS: the lanes.
-- ARGV: how many at most, those heard of last; the bytes that a member may have.
-- Answers for each lane its member, and the milliseconds since its last heartbeat.
-- include: now
local lanes, answer = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1, 'WITHSCORES'), {}
for i = 1, #lanes, 2 do
  if #lanes[i] <= tonumber(ARGV[2]) then
    local silent = math.floor(now - tonumber(lanes[i + 1]))
    answer[#answer + 1] = lanes[i]
    answer[#answer + 1] = silent
  end
end
return answer
