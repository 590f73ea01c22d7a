-- Writes the heartbeats of a worker's members of a group, and lists the latest heartbeat of each member.
--
-- KEYS: the members of the group.
-- ARGV: milliseconds after which a silent member is forgotten, and by which a heartbeat may lie in the future; the worker's members.
-- Answers the time, how many of the worker's members were not there, and for each member its name and the time of its heartbeat.
-- include: mend
mend(KEYS[1], 'zset')
-- include: now
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[1]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + tonumber(ARGV[1]), '+inf')
local new = 0
for i = 2, #ARGV do new = new + redis.call('ZADD', KEYS[1], now, ARGV[i]) end
return {now, new, redis.call('ZREVRANGE', KEYS[1], 0, 9999, 'WITHSCORES')}
