-- Removes a key of another type. Returns 1 if it has removed it, else 0.
-- For keys whose loss costs nothing.
local function mend(key, kind)
  local found = redis.call('TYPE', key)['ok']
  if found == kind or found == 'none' then return 0 end
  redis.call('DEL', key)
  return 1
end
