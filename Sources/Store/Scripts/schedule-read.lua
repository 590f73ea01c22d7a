-- Reads the state of a schedule.
--
-- KEYS: the target's schedules; what must be there where the bucket is used.
-- ARGV: the identifier.
-- Answers {state}, which is empty where there is none, or {-2} where Redis has lost the bucket.
if redis.call('EXISTS', KEYS[2]) == 0 then return {-2} end
return {redis.call('HGET', KEYS[1], ARGV[1]) or ''}
