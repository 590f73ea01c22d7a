-- Claims silent members of a group: removes each that has sent no heartbeat since. One caller gets each.
--
-- KEYS: the members of the group.
-- ARGV: for each member its name, and the time of its last heartbeat as member-beat told it.
-- Answers the names of those that were removed.
local claimed = {}
for i = 1, #ARGV, 2 do
  if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or '') == tonumber(ARGV[i + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[i])
    claimed[#claimed + 1] = ARGV[i]
  end
end
return claimed
