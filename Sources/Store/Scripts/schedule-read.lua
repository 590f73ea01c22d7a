-- Reads the state of a schedule.
--
-- KEYS: the target's schedules; the bucket's guard.
-- ARGV: the identifier.
-- Answers {state, floor}, each empty if there is none, or {-2} if Redis has lost the bucket. The floor is the revision and the apns-id of
-- the newest request that canceled all pending schedules.
if redis.call('EXISTS', KEYS[2]) == 0 then return {-2} end
local found = redis.call('HMGET', KEYS[1], ARGV[1], '')
return {found[1] or '', found[2] or ''}
