-- Reads which schedules of a partition are due.
--
-- KEYS: the due times of the partition; what must be there where the bucket is used.
-- ARGV: until when, in milliseconds; how many at most.
-- Answers name, due time, name, due time and so on, earliest first; at last the due time after these, empty where there is none. {-2} where
-- Redis has lost the bucket.
if redis.call('EXISTS', KEYS[2]) == 0 then return {-2} end
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local count = #found / 2
found[#found + 1] = redis.call('ZRANGE', KEYS[1], count, count, 'WITHSCORES')[2] or ''
return found
