-- The oldest entries of a mailbox beyond its maximum, as many as one eviction takes: revision, entry, revision, entry and so on.
-- Needs the piece `fields`.
--
-- To find them takes a look at the whole mailbox, so one eviction takes many: a mailbox that grows faster than it is evicted would otherwise
-- cost more with each. Their bytes have a bound, too, since the answer waits in memory.
local EVICTION_MAXIMUM, EVICTION_BYTES = 1024, 256 * 1024
local function overflow(mailbox, maximum)
  local over, oldest, bytes = math.min(redis.call('HLEN', mailbox) - maximum, EVICTION_MAXIMUM), {}, 0
  if over <= 0 then return oldest end
  local all = fields(mailbox, over)
  for i = 1, over do
    local entry = redis.call('HGET', mailbox, all[i][4])
    oldest[2 * i - 1] = all[i][4]
    oldest[2 * i] = entry
    bytes = bytes + #entry
    if bytes > EVICTION_BYTES then break end
  end
  return oldest
end
