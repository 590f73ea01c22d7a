-- Who holds the due times of a partition in a bucket. Beside their sorted set `t{B}PARTITION` lie `a{B}PARTITION`, a hash with the number of due
-- times of each application, and `w{B}PARTITION`, a hash with the names of those whose target no device was registered for.
-- Needs the locals `call` and `sub`, and the piece `mend`.
local function holdersOf(times) return 'a' .. sub(times, 2), 'w' .. sub(times, 2) end

-- How many due times an application holds. Another program may have written something else.
local function heldBy(holders, application) return tonumber(call('HGET', holders, application) or 0) or 0 end

-- Removes a due time, and who holds it.
local function removeDueTime(times, name, application)
  if call('ZREM', times, name) == 0 then return end
  local holders, strangers = holdersOf(times)
  if call('HDEL', strangers, name) == 1 then return end
  local held = heldBy(holders, application)
  if held > 1 then call('HSET', holders, application, held - 1) else call('HDEL', holders, application) end
end

-- Removes due times, or what lies beside them, if it has another type. Returns 1 if it has removed the due times. Then all are missing, and
-- nobody holds any.
local function mendDueTimes(times)
  local holders, strangers = holdersOf(times)
  mend(holders, 'hash')
  mend(strangers, 'hash')
  if mend(times, 'zset') == 0 then return 0 end
  call('DEL', holders, strangers)
  return 1
end
