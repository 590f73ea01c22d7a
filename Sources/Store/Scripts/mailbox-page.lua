-- Reads the oldest entries of a mailbox.
--
-- KEYS: the mailbox; the device's hash.
-- ARGV: how many entries; how many fields to skip.
-- Answers revision, entry, revision, entry and so on, oldest first; before them the fields that are no revisions; at last how many fields
-- the mailbox has, and the floor: revision and apns-id of the newest removal of all for the application of the device, or nothing.
-- include: earlier
-- include: fields
local answer, count, skipped = {}, tonumber(ARGV[1]), tonumber(ARGV[2])
local all = fields(KEYS[1], skipped + count)
for i = 1, math.min(#all - skipped, count) do
  answer[2 * i - 1] = all[skipped + i][4]
  answer[2 * i] = redis.call('HGET', KEYS[1], all[skipped + i][4])
end
answer[#answer + 1] = redis.call('HLEN', KEYS[1])
local state = redis.pcall('HMGET', KEYS[2], 'u', 'f')
local owner, floor = state[1] or '', state[2] or ''
local isOwn = #floor == 64 and string.sub(floor, 1, 8) == string.sub(owner, 17, 24)
answer[#answer + 1] = isOwn and string.sub(floor, 29) or ''
return answer
