-- Looks up a request before its service extensions are called. Changes nothing.
--
-- KEYS: its result; the guard of the bucket (see `Keys`); the device's hash, or the set of the person's devices.
-- ARGV: for a device the head of the request as the judge has it, and its apns-id; for a person nothing.
-- Answers the result, 0 for a settled request, 1 for an open one, or -2 if Redis has lost the bucket.
local call, find, sub, unpacked, packed = redis.call, string.find, string.sub, struct.unpack, struct.pack
if call('EXISTS', KEYS[2]) == 0 then return -2 end
local result = call('GET', KEYS[1])
if result then return result end
if #ARGV == 0 then return call('EXISTS', KEYS[3]) end
-- include: earlier
-- include: newness
-- include: known
-- include: floor
-- include: refusals
-- include: placed
-- include: head
local hash, source, flags, revision, terms, collapse = unpacked(HEAD, ARGV[1])
local redrive, isOfPending = bit.band(flags, 3), bit.band(flags, 8) > 0
local state = collapse == '' and call('HMGET', KEYS[3], 'u', 'w', 'p') or call('HMGET', KEYS[3], 'u', 'w', 'p', collapse)
-- An applied request goes to its device again if that is connected.
local again = state[3] and #state[3] == 12 and 1 or 0
local owner, window, known = state[1], state[2], state[4]
local at = window and placed(window, hash, find(window, hash, 7, true))
if at and sub(window, at + 8, at + 11) ~= source then return 0 end
if known then
  local newer, isSame = judging(known, revision, ARGV[2], redrive > 0)
  if isSame and redrive == 0 then at = 1 end
  if not at and not newer then return 0 end
end
if refusal(owner, sub(terms, 1, 8), terms) then return 0 end
if not at and not isOfPending and #owner > OWNER then
  local _, _, isBelow = findFloor(KEYS[3], owner, revision)
  if isBelow then return 0 end
end
return at and redrive < 2 and again or 1
