-- Writes the heartbeat of a lane.
--
-- KEYS: the lanes.
-- ARGV: the lane's member.
-- Answers 0 if the lane had lapsed and this call restores it, 2 if the key held something else, else 1.
-- include: mend
local mended = mend(KEYS[1], 'zset')
-- include: now
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
return mended == 1 and 2 or known and 1 or 0
