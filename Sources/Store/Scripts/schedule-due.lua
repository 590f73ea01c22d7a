-- Reads which schedules of a partition are due.
--
-- What is of another type under the key of the due times is removed. From then on due times are missing there, and an empty name stands for
-- that until they are restored.
--
-- KEYS: the due times of the partition; what must be there where the bucket is used.
-- ARGV: until when, in milliseconds; how many at most.
-- Answers {due, next, mended}: name, due time, name, due time and so on, earliest first; the due time after these, empty where there is
-- none; 1 where something else lay under the key. {-2} where Redis has lost the bucket.
-- include: mend
if redis.call('EXISTS', KEYS[2]) == 0 then return {-2} end
local mended = mend(KEYS[1], 'zset')
if mended == 1 then redis.call('ZADD', KEYS[1], 0, '') end
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local count = #found / 2
return {found, redis.call('ZRANGE', KEYS[1], count, count, 'WITHSCORES')[2] or '', mended}
