-- Replaces the state of a schedule if the expected one stands.
--
-- A call that is repeated because its answer was lost finds its own state, and writes the same again.
--
-- KEYS: the target's schedules; the pending ones; the ended ones; the due times of the expected state's partition; those of the new state's
--       partition; the follow-ups of that partition; the applications that have pending schedules for the target; the bucket's guard; the
--       device's hash or the set of the person's devices.
-- ARGV: the identifier; the first HEAD bytes of the expected state, or nothing if there is none; the new state; its earliest due time, or
--       nothing if it has ended; the schedule's name among the due times; the time of its newest request; now; how long Redis keeps an
--       ended schedule; the maximum number of pending schedules of the target; of ended ones; of due times of the partition; the
--       application; the expected floor; when an ended state is followed up; now, plus half a millisecond if schedule-settle.lua will
--       follow; the hash of the application; the place of the request's record, or nothing. All times are in milliseconds.
-- Answers {0, state, floor} if another state or floor stands; {2, isKnown} if there is no room for a further due time, or was none when the
-- record was read before, with isKnown 1 if a device is registered for the target and the application; {-2} if Redis has lost the bucket;
-- else {1, isDue}, with isDue 1 if a follow-up is due now, and if too many are pending also the identifier and the state of the oldest.
-- include: mend
-- include: earlier
local HEAD = 46
-- Schedules for which no device is registered have together this part of the maximum.
local STRANGERS = 16
-- The first byte of the revision of the newest request in a state.
local REVISION = 7
local COMPARED = 256
-- So many records without room are remembered, and for so long: more than a lane reads again after it was killed.
local REFUSED, REMEMBERED = 4096, 3600000
local call, sub = redis.call, string.sub
-- include: holders
local schedules, pending, ended, formerTimes, times = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local followUps, applications = KEYS[6], KEYS[7]
if call('EXISTS', KEYS[8]) == 0 then return {-2} end
local identifier, expected, state, due, name, requested = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now, keep, maximum, application = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[12]
-- As in schedule-due.lua, an empty name marks missing due times.
if mend(followUps, 'zset') + mendDueTimes(times) > 0 then call('ZADD', times, 0, '') end
if formerTimes ~= times and mendDueTimes(formerTimes) == 1 then call('ZADD', formerTimes, 0, '') end
local found = call('HMGET', schedules, identifier, '')
local known, floor = found[1] or '', found[2] or ''
if known ~= state and (sub(known, 1, HEAD) ~= expected or floor ~= ARGV[13]) then return {0, known, floor} end
if due ~= '' and not call('ZSCORE', times, name) then
  local holders, strangers = holdersOf(times)
  local most = tonumber(ARGV[11])
  local isOfPerson = sub(KEYS[9], 1, 1) == 'u'
  local owner = not isOfPerson and redis.pcall('HGET', KEYS[9], 'u')
  local isKnown = isOfPerson and call('EXISTS', KEYS[9]) == 1 or type(owner) == 'string' and sub(owner, 17, 24) == ARGV[16]
  local held, hasRoom = heldBy(holders, application), nil
  if known == state then
    -- It is only noted again: its due time was missing.
    hasRoom = true
  elseif isKnown then
    -- When all is used, those that hold less than an equal share have room up to that share. So one alone may use all of it.
    hasRoom = call('ZCARD', times) < most or held < most / (call('HLEN', holders) + (held == 0 and 1 or 0))
  else
    hasRoom = call('HLEN', strangers) < math.max(1, math.floor(most / STRANGERS))
  end
  local refused, record = 'j' .. sub(times, 2), ARGV[17]
  local wasRefused = record ~= '' and type(redis.pcall('ZSCORE', refused, record)) == 'string'
  if wasRefused or not hasRoom then
    if record ~= '' then
      mend(refused, 'zset')
      call('ZADD', refused, now, record)
      if call('ZCARD', refused) > REFUSED then call('ZREM', refused, call('ZRANGE', refused, 0, 0)[1]) end
      call('PEXPIRE', refused, REMEMBERED)
    end
    return {2, isKnown and 1 or 0}
  end
  if isKnown then call('HSET', holders, application, held + 1) else call('HSET', strangers, name, '') end
end
call('HSET', schedules, identifier, state)
local isDue = 0
if due == '' then
  removeDueTime(formerTimes, name, application)
  removeDueTime(times, name, application)
  call('ZREM', pending, identifier)
  if known ~= state or not call('ZSCORE', ended, identifier) then call('ZADD', ended, ARGV[15], identifier) end
  call('ZADD', followUps, ARGV[14], name)
  if tonumber(ARGV[14]) <= now then isDue = 1 end
  -- The follow-up forgets the oldest, and then the next: see schedule-follow-up.lua.
  if call('ZCARD', ended) > tonumber(ARGV[10]) then
    call('ZADD', followUps, now, sub(name, 1, #name - #identifier) .. call('ZRANGE', ended, 0, 0)[1])
    isDue = 1
  end
else
  if formerTimes ~= times then removeDueTime(formerTimes, name, application) end
  call('ZADD', times, due, name)
  call('ZADD', pending, requested, identifier)
  call('ZREM', ended, identifier)
end
local count = call('ZCARD', pending)
if count > 0 then call('HSET', applications, application, '') end
-- The follow-ups forget ended schedules one by one. The keys expire in case a follow-up is lost.
for i = 1, 3 do
  if count > 0 then call('PERSIST', KEYS[i]) else call('PEXPIRE', KEYS[i], 2 * keep) end
end
if count <= maximum then return {1, isDue} end
-- Requests of one batch may have one timestamp. Of those the oldest is the one with the lowest revision, whatever its identifier. A producer
-- may give any number of requests one timestamp, so only so many are compared.
local first = call('ZRANGE', pending, 0, 0, 'WITHSCORES')
local oldest = {first[1], call('HGET', schedules, first[1]) or ''}
local timestamp, partition, offset
for _, other in ipairs(call('ZRANGEBYSCORE', pending, first[2], first[2], 'LIMIT', 0, COMPARED)) do
  local otherState = call('HGET', schedules, other) or ''
  if #otherState >= HEAD then
    local otherTimestamp, otherPartition, otherOffset = struct.unpack('>I8I4I8', otherState, REVISION)
    if not timestamp or earlier(otherTimestamp, otherPartition, otherOffset, timestamp, partition, offset) then
      oldest, timestamp, partition, offset = {other, otherState}, otherTimestamp, otherPartition, otherOffset
    end
  end
end
return {1, isDue, oldest[1], oldest[2]}
