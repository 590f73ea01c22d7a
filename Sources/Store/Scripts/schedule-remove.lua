-- Removes the due time of a schedule that is not pending.
--
-- KEYS: the due times of the partition.
-- ARGV: the schedule's name among them; its application.
-- Answers 1.
local call, sub = redis.call, string.sub
-- include: mend
-- include: holders
-- As in schedule-due.lua, an empty name marks missing due times.
if mendDueTimes(KEYS[1]) == 1 then call('ZADD', KEYS[1], 0, '') end
removeDueTime(KEYS[1], ARGV[1], ARGV[2])
return 1
