-- Removes the due time of a schedule that is not pending.
--
-- KEYS: the due times of the partition.
-- ARGV: the schedule's name among them; its application.
-- Answers 1.
local call, sub = redis.call, string.sub
-- include: mend
-- include: holders
mendDueTimes(KEYS[1])
removeDueTime(KEYS[1], ARGV[1], ARGV[2])
return 1
