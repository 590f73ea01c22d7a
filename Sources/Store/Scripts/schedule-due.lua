-- Reads which schedules of a partition are due, and which ended ones are to be followed up.
--
-- What is of another type under one of the two keys is removed. From then on due times are missing there, and an empty name stands for that
-- until they are restored.
--
-- KEYS: the due times of the partition; its follow-ups; what must be there where the bucket is used.
-- ARGV: until when, in milliseconds; how many of each at most.
-- Answers {due, next, follow-ups, next follow-up, mended}: name, due time, name, due time and so on, earliest first; the due time after
-- these, empty where there is none; the names of the ended ones, and the next time, in the same way; the keys that held something else.
-- {-2} where Redis has lost the bucket.
-- include: mend
local call = redis.call
if call('EXISTS', KEYS[3]) == 0 then return {-2} end
local mended = {}
for i = 1, 2 do
  if mend(KEYS[i], 'zset') == 1 then
    mended[#mended + 1] = KEYS[i]
    call('ZADD', KEYS[1], 0, '')
  end
end
local due = call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local followUps = call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local next = call('ZRANGE', KEYS[1], #due / 2, #due / 2, 'WITHSCORES')[2]
local nextFollowUp = call('ZRANGE', KEYS[2], #followUps, #followUps, 'WITHSCORES')[2]
return {due, next or '', followUps, nextFollowUp or '', mended}
