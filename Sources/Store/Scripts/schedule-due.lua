-- Reads the due schedules and follow-ups of a partition.
--
-- If one of the two keys has another type, the script removes it. Due times are missing then: an empty name marks this until they are
-- restored.
--
-- KEYS: the due times of the partition; its follow-ups; the bucket's versions of the time zone database; the bucket's guard.
-- ARGV: the latest due time, in milliseconds; the maximum number of schedules, and of follow-ups; the partition; the caller's version of the
--       time zone database.
-- Answers {due, next, follow-ups, next follow-up, mended, outdated}: each due name and its due time, earliest first; the next due time, or
-- nothing; the names of the due follow-ups; the next time of a follow-up, or nothing; the keys that the script removed; 1 if a worker with
-- another version of the database computed the due times, else 0. {-2} if Redis has lost the bucket.
-- include: mend
local call, sub = redis.call, string.sub
-- include: holders
if call('EXISTS', KEYS[4]) == 0 then return {-2} end
local mended = {}
for i = 1, 2 do
  if (i == 1 and mendDueTimes(KEYS[1]) or i == 2 and mend(KEYS[2], 'zset')) == 1 then
    mended[#mended + 1] = KEYS[i]
    call('ZADD', KEYS[1], 0, '')
  end
end
mend(KEYS[3], 'hash')
local outdated = 0
if call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then
  if call('EXISTS', KEYS[1]) == 0 then call('HSET', KEYS[3], ARGV[3], ARGV[4]) else outdated = 1 end
end
local due = call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local followUps = call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local next = call('ZRANGE', KEYS[1], #due / 2, #due / 2, 'WITHSCORES')[2]
local nextFollowUp = call('ZRANGE', KEYS[2], #followUps, #followUps, 'WITHSCORES')[2]
return {due, next or '', followUps, nextFollowUp or '', mended, outdated}
