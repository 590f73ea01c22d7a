-- The entries of the first fields, `most` of them and as many as one answer has: revision, entry, revision, entry and so on. Where `isMeant`
-- is given, only those for which it answers true.
--
-- To find fields takes a look at the whole mailbox, so an answer has many of them: a mailbox that grows faster than it is emptied would
-- otherwise cost more with each. Their bytes have a bound, too, since the answer waits in memory.
local ANSWER_MAXIMUM, ANSWER_BYTES = 1024, 256 * 1024
local function entries(mailbox, fields, most, isMeant)
  local found, bytes = {}, 0
  for i = 1, math.min(#fields, most) do
    local entry = redis.call('HGET', mailbox, fields[i][4])
    if entry and (not isMeant or isMeant(entry)) then
      found[#found + 1] = fields[i][4]
      found[#found + 1] = entry
      bytes = bytes + #entry
      if #found == 2 * ANSWER_MAXIMUM or bytes > ANSWER_BYTES then break end
    end
  end
  return found
end
