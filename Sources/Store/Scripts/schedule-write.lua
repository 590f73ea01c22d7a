-- Writes the state of a schedule, where the expected one stands.
--
-- A call that is made again since its answer was lost finds its own state, and does the same again.
--
-- KEYS: the target's schedules; which of them are pending; which have ended; the due times of the partition that the expected state is of;
--       those of the partition that the new one is of; the follow-ups of that partition; the applications that have pending ones for the
--       target; what must be there where the bucket is used.
-- ARGV: the identifier; the first HEAD bytes of the expected state, or nothing where there is none; the new state; its earliest due time, or
--       nothing where it has ended; its name among the due times; the time of its newest request; now; how long an ended one is remembered;
--       how many of the target may be pending; how many ended ones are remembered; how many due times a partition may have; the
--       application; the expected floor; when the new state is followed up where it has ended; now, and half a millisecond more where
--       schedule-settle.lua is to come. All times are in milliseconds.
-- Answers {0, state, floor} where another state or floor stands; {2} where the partition has too many due times; {-2} where Redis has lost
-- the bucket; else {1, isDue}, where isDue is 1 if an ended one is to be followed up now, and where too many are pending the identifier and
-- the state of the oldest.
-- include: mend
local HEAD = 46
local call, sub = redis.call, string.sub
local schedules, pending, ended, formerTimes, times = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local followUps, applications = KEYS[6], KEYS[7]
if call('EXISTS', KEYS[8]) == 0 then return {-2} end
local identifier, expected, state, due, name, requested = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now, keep, maximum = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
-- As schedule-due.lua does it: an empty name stands for what is missing then.
for i = 4, 6 do
  if mend(KEYS[i], 'zset') == 1 then call('ZADD', i == 4 and formerTimes or times, 0, '') end
end
local found = call('HMGET', schedules, identifier, '')
local known, floor = found[1] or '', found[2] or ''
if known ~= state and (sub(known, 1, HEAD) ~= expected or floor ~= ARGV[13]) then return {0, known, floor} end
if due ~= '' and not call('ZSCORE', times, name) and call('ZCARD', times) >= tonumber(ARGV[11]) then return {2} end
call('HSET', schedules, identifier, state)
local isDue = 0
if due == '' then
  call('ZREM', formerTimes, name)
  call('ZREM', times, name)
  call('ZREM', pending, identifier)
  if known ~= state or not call('ZSCORE', ended, identifier) then call('ZADD', ended, ARGV[15], identifier) end
  call('ZADD', followUps, ARGV[14], name)
  if tonumber(ARGV[14]) <= now then isDue = 1 end
  -- The oldest one is forgotten, and then the next: see schedule-follow-up.lua.
  if call('ZCARD', ended) > tonumber(ARGV[10]) then
    call('ZADD', followUps, now, sub(name, 1, #name - #identifier) .. call('ZRANGE', ended, 0, 0)[1])
    isDue = 1
  end
else
  if formerTimes ~= times then call('ZREM', formerTimes, name) end
  call('ZADD', times, due, name)
  call('ZADD', pending, requested, identifier)
  call('ZREM', ended, identifier)
end
local count = call('ZCARD', pending)
if count > 0 then call('SADD', applications, ARGV[12]) end
-- The follow-ups forget what has ended, one by one. What they have missed goes at last.
for i = 1, 3 do
  if count > 0 then call('PERSIST', KEYS[i]) else call('PEXPIRE', KEYS[i], 2 * keep) end
end
if count <= maximum then return {1, isDue} end
local oldest = call('ZRANGE', pending, 0, 0)[1]
return {1, isDue, oldest, call('HGET', schedules, oldest) or ''}
