-- The oldest entries of a mailbox beyond its maximum, as many as one eviction takes: revision, entry, revision, entry and so on.
-- Needs the piece `fields`.
local EVICTION_MAXIMUM = 64
local function overflow(mailbox, maximum)
  local over, oldest = math.min(redis.call('HLEN', mailbox) - maximum, EVICTION_MAXIMUM), {}
  if over <= 0 then return oldest end
  local all = fields(mailbox)
  for i = 1, over do
    oldest[2 * i - 1] = all[i][4]
    oldest[2 * i] = redis.call('HGET', mailbox, all[i][4])
  end
  return oldest
end
