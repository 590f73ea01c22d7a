-- What few requests need: repeats, redriven ones, contested places, removals. Needs the locals of the script `judge`, and the pieces
-- `earlier`, `newness`, `floor`, `layouts` and `entries`.

-- Whether a mailbox has the entry of an apns-id at a revision.
local function isKept(mailbox, kept, id)
  local found = call('HGET', mailbox, kept)
  return found and sub(found, 1, 16) == id
end

-- Whether the request of a known revision waits in the mailbox for its device, and then for no place. This program cannot read the trigger of
-- an entry of a newer one. But the cluster's own withdrawal has the partition and offset of the request that it withdraws, which had one.
local function isAway(mailbox, known, revision)
  local found = call('HGET', mailbox, sub(known, 1, 20))
  if found and isNewer(found) then return sub(known, 9, 20) ~= sub(revision, 9) end
  return found and isDelivered(found)
end

-- Whether a redriven request is a repeat: its mailbox has it; or its device remembers it, where no tool has found that an outcome is missing.
-- Returns also the revision to keep: the records of one request may have different times.
local function redriven(mailbox, id, redrive, isAgain, kept, known, isSame)
  local function whereKept()
    if isKept(mailbox, kept, id) then return kept end
    for _, field in ipairs(call('HKEYS', mailbox)) do
      if #field == 20 and sub(field, 9) == sub(kept, 9) and isKept(mailbox, field, id) then return field end
    end
  end

  local found = (isAgain or isSame or not known) and whereKept()
  return found or redrive ~= 2 and isAgain, not known and found or kept
end

-- Settles a place that has an entry already. Returns the revision at which the mailbox has the request, and what that superseded;
-- or false, and what has the place. The request without an origin gets it, at a later time: so a device takes it for newer, and its
-- acknowledgement of the other one deletes only the other's entry. A bounded removal stands at a revision that its producer has chosen: it
-- takes a later time, too, and leaves the place to the other one.
local function contested(mailbox, kept, entry, id, redrive, isBounded)
  local other = sub(call('HGET', mailbox, kept), 1, 16)
  if #other < 16 or other == id then
    call('HSET', mailbox, kept, entry)
    return kept, ''
  end
  if redrive > 0 then return false, kept .. other end
  if not isBounded then call('HDEL', mailbox, kept) end
  local later = kept
  repeat later = packed('>I8', unpacked('>I8', later) + 1) .. sub(later, 9) until call('HSETNX', mailbox, later, entry) == 1
  return later, isBounded and '' or kept .. other
end

-- Names a request in the answer once in a call. `key` is the mailbox, or the device where a removal of all is named.
local function name(key, number)
  named = named or {}
  if not named[key] then answer[#answer + 1] = number end
  named[key] = true
end

-- The field under which a removal names a notification without a collapse id: `c` and the text of its apns-id.
local function fieldOf(id)
  return 'c' .. string.gsub(id, '.', function (character) return string.format('%02x', byte(character)) end)
    :gsub('^(........)(....)(....)(....)', '%1-%2-%3-%4-')
end

-- What removals have said of an older request. Returns the removal that has named it by its apns-id; the floor if that bars it; the least
-- timestamp of its revision if it is newer than the floor; and its revision if it is itself the newest removal of all.
local function standing(device, owner, revision, id, collapse, removesAll, isOfPending, isRemembered)
  local isLate, floor, isBelow, timestamp = findFloor(device, owner, revision)
  if isBelow then timestamp = false end
  if isOfPending then isBelow = false end
  -- It has no revision of its own, but a removal that came before it may have named it.
  local naming = isLate and collapse == '' and not removesAll and not isRemembered and call('HGET', device, fieldOf(id))
  local isFloor = removesAll and floor and sub(floor, 9, 20) == sub(revision, 9) and sub(floor, 21) == id
  return naming, isBelow and floor, timestamp, isFloor and sub(floor, 1, 20)
end

-- Names a removal of all that may cancel what its mailbox has beside its own entry. The entries stay until their events are durable.
local function nameCanceled(device, mailbox, kept)
  if call('HLEN', mailbox) > call('HEXISTS', mailbox, kept) then name(device, -number) end
end

-- Removes the notification that a removal names by its apns-id from the mailbox: it is older, and has no collapse id, hence no revision of
-- its own. The kind stands behind the apns-id, 1 for a notification, and the length of the collapse id behind an entry's first 64 bytes.
-- An entry of a newer program stays: its device removes the notification after it. A removal of what waits for a place leaves what waits for
-- its device.
local function withdraw(mailbox, wanted, revision, isOfPending)
  local timestamp, partition, offset = unpacked('>I8I4I8', revision)
  local all = call('HGETALL', mailbox)
  for i = 1, #all, 2 do
    local field, found = all[i], all[i + 1]
    if #field == 20 and sub(found, 1, 16) == wanted and (byte(found, 65) or 0) == 0 and byte(found, 17) % 4 == 1 and not isNewer(found)
      and not (isOfPending and isDelivered(found)) and not isOlder(timestamp, partition, offset, unpacked('>I8I4I8', field)) then
      call('HDEL', mailbox, field)
      return field .. wanted
    end
  end
  return ''
end

-- Remembers a removal that bars older requests, by their apns-id or all of them. `floor` is the revision and the apns-id of one of all.
local function bar(device, owner, application, kept, floor)
  local former, horizon = call('HGET', device, 'f'), kept
  if former and (#former == 28 or #former == 64) and sub(former, 1, 8) == application then
    floor = floor or sub(former, FLOOR_BEGIN)
    local timestamp, partition, offset = unpacked('>I8I4I8', kept)
    if earlier(timestamp, partition, offset, unpacked('>I8I4I8', former, 9)) then horizon = sub(former, 9, 28) end
  end
  call('HSET', device, 'u', sub(owner, 1, OWNER) .. horizon, 'f', application .. horizon .. (floor or ''))
end

-- Applies a removal that names a notification by its apns-id. Returns what it superseded.
local function removeNamed(device, mailbox, owner, terms, revision, collapse, kept, id, superseded, isExpired, isOfPending)
  local wanted = sub(terms, 25)
  if superseded == '' and not isExpired then superseded = withdraw(mailbox, wanted, revision, isOfPending) end
  bar(device, owner, sub(terms, 1, 8), kept)
  local field = fieldOf(wanted)
  if field ~= collapse then call('HSET', device, field, kept .. id) end
  return superseded
end
