-- Reads the oldest entries of a mailbox.
--
-- KEYS: the mailbox.
-- ARGV: how many entries; how many fields to skip.
-- Answers revision, entry, revision, entry and so on, oldest first; before them the fields that are no revisions; at last how many fields
-- the mailbox has.
-- include: earlier
-- include: fields
local all = fields(KEYS[1])
local answer, skipped = {}, tonumber(ARGV[2])
for i = 1, math.min(#all - skipped, tonumber(ARGV[1])) do
  answer[2 * i - 1] = all[skipped + i][4]
  answer[2 * i] = redis.call('HGET', KEYS[1], all[skipped + i][4])
end
answer[#answer + 1] = #all
return answer
