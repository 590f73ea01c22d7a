-- Reads the states of a target's pending schedules.
--
-- KEYS: the target's schedules; the pending ones; the bucket's guard.
-- ARGV: none.
-- Answers {floor, identifier, state, identifier, state and so on}, or {-2} if Redis has lost the bucket. The floor is as in
-- schedule-read.lua.
if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
local found = {redis.call('HGET', KEYS[1], '') or ''}
for _, identifier in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  found[#found + 1] = identifier
  found[#found + 1] = redis.call('HGET', KEYS[1], identifier) or ''
end
return found
