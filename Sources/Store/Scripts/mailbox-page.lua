-- Reads the oldest entries of a mailbox. Those of a newer program are left out, and do not count.
--
-- KEYS: the mailbox; the device's hash.
-- ARGV: how many entries; how many fields to skip.
-- Answers revision, entry, revision, entry and so on, oldest first; before them the fields that are no revisions; at last how many fields
-- the mailbox has, the floor (revision and apns-id of the newest removal of all for the application of the device, or nothing), and how
-- many entries of a newer program were left out.
-- include: earlier
-- include: fields
-- include: layouts
local count, skipped = tonumber(ARGV[1]), tonumber(ARGV[2])
local answer, newer
local function read(all)
  answer, newer = {}, 0
  for i = 1, #all do
    local entry = redis.call('HGET', KEYS[1], all[i][4])
    if all[i][1] >= 0 and isNewer(entry) then
      newer = newer + 1
    elseif i - newer > skipped then
      answer[#answer + 1], answer[#answer + 2] = all[i][4], entry
    end
    if i - newer == skipped + count then return end
  end
end
read(fields(KEYS[1], skipped + count))
local depth = redis.call('HLEN', KEYS[1])
-- The others lie behind those that were left out.
if newer > 0 and #answer < 2 * count and depth > skipped + count then read(fields(KEYS[1])) end
answer[#answer + 1] = depth
local state = redis.pcall('HMGET', KEYS[2], 'u', 'f')
local owner, floor = state[1] or '', state[2] or ''
local isOwn = #floor == 64 and string.sub(floor, 1, 8) == string.sub(owner, 17, 24)
answer[#answer + 1] = isOwn and string.sub(floor, 29) or ''
answer[#answer + 1] = newer
return answer
