-- Removes everything that is counted for partitions: they are no longer suspected.
--
-- KEYS: the counts.
-- ARGV: the partitions' fields.
-- Answers 1.
local all = redis.call('HKEYS', KEYS[1])
for _, field in ipairs(ARGV) do
  for _, name in ipairs(all) do
    if string.match(name, '^%a%d+') == field then redis.call('HDEL', KEYS[1], name) end
  end
end
return 1
