-- Notes the group of records that the process begins to process.
--
-- Groups of other partitions that the process has noted are finished, and are marked so: otherwise a crash with this group would count
-- against the other partitions, too. Those partitions stay suspected.
--
-- KEYS: the counts.
-- ARGV: the process; the partition's field, or nothing if no group follows; first offset; how many offsets it spans; the fields of the
--       other partitions.
-- Answers 1.
-- include: mend
mend(KEYS[1], 'hash')
for i = 5, #ARGV do
  local last = redis.call('HGET', KEYS[1], ARGV[i] .. ' group')
  local group, process = string.match(last or '', '^(.*) (%S+)$')
  if process == ARGV[1] then redis.call('HSET', KEYS[1], ARGV[i] .. ' group', group .. ' -') end
end
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], ARGV[2] .. ' group', ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[1]) end
return 1
