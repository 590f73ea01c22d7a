-- Reads a page of a person's devices.
--
-- KEYS: the person's set; the markers of its bucket; perhaps the applications that have pending schedules for the person.
-- ARGV: the token before the page, `-` for the first page; how many.
-- Answers the tokens; -3 where such an application is there; or -2 where Redis has lost the bucket: without this a set that is lost would be
-- a person without devices.
if redis.call('EXISTS', KEYS[2]) == 0 then return -2 end
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then return -3 end
return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])
