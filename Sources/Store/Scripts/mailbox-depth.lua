-- Counts the entries of a mailbox. Changes nothing.
--
-- KEYS: the mailbox.
-- ARGV: nothing.
-- Answers how many entries it has, and the timestamp of the oldest one if there are few enough to search.
local count = redis.call('HLEN', KEYS[1])
if count == 0 or count > 4096 then return {count} end
local oldest
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if #name == 20 then
    local timestamp = struct.unpack('>I8', name)
    if not oldest or timestamp < oldest then oldest = timestamp end
  end
end
if oldest then return {count, oldest} end
return {count}
