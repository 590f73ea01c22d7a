-- Writes the heartbeat of a worker with its report.
--
-- KEYS: the workers; their reports.
-- ARGV: name; report; milliseconds after which a silent worker is forgotten; how many workers are kept; milliseconds by which a heartbeat
--       may lie in the future. Later ones were written by another clock, and are forgotten too.
-- Answers 1 if one of the keys held something else, else 0.
-- include: mend
local mended = math.max(mend(KEYS[1], 'zset'), mend(KEYS[2], 'hash'))
-- include: now
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local ahead = redis.call('ZRANGEBYSCORE', KEYS[1], now + tonumber(ARGV[5]), '+inf', 'LIMIT', 0, 100)
if #ahead > 0 then
  redis.call('ZREM', KEYS[1], unpack(ahead))
  redis.call('HDEL', KEYS[2], unpack(ahead))
end
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]), 'LIMIT', 0, 100)
local over = redis.call('ZCARD', KEYS[1]) - #gone - tonumber(ARGV[4])
if over > 0 then gone = redis.call('ZRANGE', KEYS[1], 0, #gone + math.min(over, 100) - 1) end
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('HDEL', KEYS[2], unpack(gone))
end
return mended
