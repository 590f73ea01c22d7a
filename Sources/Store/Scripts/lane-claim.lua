-- Takes a partition that no living lane has, or one that the fewest lanes have.
--
-- KEYS: the lanes.
-- ARGV: the lane's name; milliseconds after which a silent lane is dead; the number of partitions.
-- Answers the partition, and 1 if the key held something else, else 0.
-- include: mend
local mended = mend(KEYS[1], 'zset')
-- include: now
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
local taken, least, partition = {}, math.huge, 0
for _, lane in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local p = tonumber(string.match(lane, '^%d+'))
  -- A member that Carillon did not write has no partition.
  if p then taken[p] = (taken[p] or 0) + 1 end
end
for p = 0, tonumber(ARGV[3]) - 1 do
  if (taken[p] or 0) < least then least, partition = taken[p] or 0, p end
end
redis.call('ZADD', KEYS[1], now, partition .. ':' .. ARGV[1])
return {partition, mended}
