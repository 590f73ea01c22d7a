-- The place behind a field with a length of two bytes.
local function pastLong(entry, place)
  local high, low = string.byte(entry, place, place + 1)
  return place + 2 + (high or 0) * 256 + (low or 0)
end

-- Where the trigger of an entry begins: behind 64 bytes, four fields with a length of one byte, and the category.
local function placeOfTrigger(entry)
  local place = 65
  for _ = 1, 4 do place = place + 1 + (string.byte(entry, place) or 0) end
  return pastLong(entry, place)
end

-- Whether an entry has no trigger. One with a trigger is pending at its device.
local function isDelivered(entry)
  local place = placeOfTrigger(entry)
  return pastLong(entry, place) == place + 2
end

-- An entry without its payload, which is most of its bytes.
local function headOf(entry)
  local place = pastLong(entry, placeOfTrigger(entry))
  -- Behind the trigger: the extensions, the attachments, and the time of publication where a bit of the form says so.
  place = pastLong(entry, place + 1 + (string.byte(entry, place) or 0))
  if (string.byte(entry, 17) or 0) % 16 > 7 then place = place + 8 end
  return string.sub(entry, 1, place - 1)
end

-- The entries of the first fields without their payloads, `most` of them and as many as one answer has: revision, entry, revision, entry and
-- so on. Only those for which `isMeant` answers true, where it is given; none of a newer program. Answers also how many of those it met.
-- Needs the piece `layouts`.
--
-- To find fields takes a look at the whole mailbox, so an answer has many of them: a mailbox that grows faster than it is emptied would
-- otherwise cost more with each. Their bytes have a bound, too, since the answer waits in memory.
local ANSWER_MAXIMUM, ANSWER_BYTES = 1024, 256 * 1024
local function entries(mailbox, fields, most, isMeant)
  local found, bytes, newer = {}, 0, 0
  for i = 1, #fields do
    local entry = redis.call('HGET', mailbox, fields[i][4])
    if entry and #fields[i][4] == 20 and isNewer(entry) then
      newer = newer + 1
    elseif entry and (not isMeant or isMeant(entry)) then
      local head = headOf(entry)
      found[#found + 1] = fields[i][4]
      found[#found + 1] = head
      bytes = bytes + #head
      if #found == 2 * math.min(most, ANSWER_MAXIMUM) or bytes > ANSWER_BYTES then break end
    end
  end
  return found, newer
end
