-- The one atomic call of the transform stage: judges requests in order, and applies them.
--
-- A verdict is the same when a record comes again, so its events can simply be emitted again. Therefore the script looks for what it applied
-- before it looks at anything else, the registration included. `Verdict` says what each verdict means.
--
-- What Redis has of a device may be unreadable. Its own requests get this as their verdict, and the other requests of the call get theirs.
-- The script does as little as possible for each request. It looks after the bounds of the kept data only with about one of `SLACK` requests:
-- when the window of ids has a certain length, and when a new generation of ids begins.
--
-- KEYS: per request the device's hash and its mailbox; at last the markers of each bucket in which they lie.
-- ARGV: now in seconds; milliseconds to keep a mailbox that nobody reads; the maximum of entries of a device that is away; of a connected
--       one; ids remembered; collapse revisions remembered; the heads of all requests, one behind the other; then per request
--       entry     as the mailbox keeps it; begins with the apns-id, and ends there where the request has expired
-- Answers {-2} where Redis has lost one of the buckets. Else a string, and behind it numbers of requests: that of the first request that
-- found its mailbox too full, and, negative, that of the first removal of all that found other entries in its mailbox. The lane reads later
-- which entries end, since that takes a look at the whole mailbox, and the device may be known already. The string has a byte for each
-- request, and then what follows each: the byte is the verdict, and 8, 16 and 32 more for each of the next three that follows:
--       12  presence
--       20  revision as it is kept, where it is not the request's own
--       36  revision and apns-id of what a stale one lost to, or of what was superseded in the mailbox
-- For a stale one 64 more says that it was canceled: it lost to a removal of all notifications.
--       or, for UNREADABLE, the bytes of the reason 1, the reason
-- SCHEDULES says that the request was not judged: something is pending for the device, and the schedules are to be asked first.
local STALE, NEW, REPEAT, DUPLICATE, UNREADABLE, CANCELED, SCHEDULES = 0, 1, 2, 3, 7, 64, 128
local SLACK, AGE = 16, 600
local EXPIRED, PRESENT, NOTIFY, OWNER = 16, 12, 1, 24
local call, find, sub, byte, char, unpacked, packed =
  redis.call, string.find, string.sub, string.byte, string.char, struct.unpack, struct.pack
local now, keep, maximum, remembered, revisions = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])
local connectedMaximum = tonumber(ARGV[4])
local KEYS, ARGV = KEYS, ARGV
-- How long the window of ids grows. It goes from `remembered` to `remembered + SLACK` ids again and again: one of these lengths is chosen.
local LONGEST, CHOSEN, PERIOD = 6 + 12 * (remembered + SLACK), 6 + 12 * (remembered + SLACK / 2), 12 * SLACK
local COUNT, heads, position = #ARGV - 7, ARGV[7], 1
if call('EXISTS', unpack(KEYS, 2 * COUNT + 1)) < #KEYS - 2 * COUNT then return {-2} end
-- include: earlier
-- include: newness
local answer = {''}

-- The verdicts, and what follows them, which become one string at last: each string costs, and each of its bytes.
local verdicts, parts, count = {}, {}, 0
local function add(number, verdict, presence, revision, other)
  if presence then
    verdict, count = verdict + 8, count + 1
    parts[count] = presence
  end
  if revision then
    verdict, count = verdict + 16, count + 1
    parts[count] = revision
  end
  if other ~= '' then
    verdict, count = verdict + 32, count + 1
    parts[count] = other
  end
  verdicts[number] = verdict
end

-- Removes the oldest collapse revisions where a device has too many, and all that are past the longest lifetime or cannot be read.
local function prune(device)
  local all, kept = call('HGETALL', device), {}
  local limit = now * 1000 - tonumber(keep)
  for i = 1, #all, 2 do
    if byte(all[i]) == 99 then
      local timestamp, partition, offset = -1, 0, 0
      if #all[i + 1] >= 20 then timestamp, partition, offset = unpacked('>I8I4I8', all[i + 1]) end
      if timestamp < limit then call('HDEL', device, all[i]) else kept[#kept + 1] = {timestamp, partition, offset, all[i]} end
    end
  end
  if #kept < revisions then return end
  table.sort(kept, function (a, b) return earlier(a[1], a[2], a[3], b[1], b[2], b[3]) end)
  for i = 1, #kept - revisions + math.floor(revisions / 8) do call('HDEL', device, kept[i][4]) end
end

-- Looks whether a mailbox has more than its maximum, and tells it once in a call.
local overflowed = {}
local function findOverflow(mailbox, number, most)
  if overflowed[mailbox] or call('HLEN', mailbox) <= most then return end
  overflowed[mailbox] = true
  answer[#answer + 1] = number
end

-- The functions for removals, and for requests that are older than one. They are made at their first use, since each function that a script
-- makes costs every call.
local removals
local function ofRemovals()
  if removals then return removals end
  -- include: floor

  -- Tells once in a call that a removal of all, whose own entry is at `kept`, may cancel what its mailbox has. The entries stay until their
  -- events are durable.
  local named = {}
  local function findCanceled(mailbox, number, kept)
    if named[mailbox] or call('HLEN', mailbox) <= call('HEXISTS', mailbox, kept) then return end
    named[mailbox] = true
    answer[#answer + 1] = -number
  end

  -- Remembers a removal that bars older requests, by their apns-id or all of them. `floor` is the revision and the apns-id of one of all.
  local function bar(device, owner, application, kept, floor)
    local former, horizon = call('HGET', device, 'f'), kept
    if former and (#former == 28 or #former == 64) and sub(former, 1, 8) == application then
      floor = floor or sub(former, FLOOR_BEGIN)
      local timestamp, partition, offset = unpacked('>I8I4I8', kept)
      local formerTimestamp, formerPartition, formerOffset = unpacked('>I8I4I8', former, 9)
      if earlier(timestamp, partition, offset, formerTimestamp, formerPartition, formerOffset) then horizon = sub(former, 9, 28) end
    end
    call('HSET', device, 'u', sub(owner, 1, OWNER) .. horizon, 'f', application .. horizon .. (floor or ''))
  end

  -- The field under which a removal names a notification without a collapse id: `c` and the text of its apns-id.
  local function fieldOf(id)
    return 'c' .. string.gsub(id, '.', function (character) return string.format('%02x', byte(character)) end)
      :gsub('^(........)(....)(....)(....)', '%1-%2-%3-%4-')
  end

  removals = {findFloor = findFloor, findCanceled = findCanceled, bar = bar, fieldOf = fieldOf}
  return removals
end

-- The window with one more id, where it is the first, or the window has become too long or too old; and whether its generation is new.
local function renewed(window, hash, source)
  local started, former = 0, 0
  if window then started, former = unpacked('>I4I2', window) end
  if now - started < AGE then
    return packed('>I4I2', started, math.max(0, former - 12 * (SLACK + 1))) .. sub(window, -12 * (remembered - 1)) .. hash .. source, false
  end
  window = window and now - started < 2 * AGE and sub(window, 7 + former) or ''
  return packed('>I4I2', now, #window) .. window .. hash .. source, true
end

-- Whether an entry of a mailbox, at its revision, is what a removal at `revision` names by the apns-id: an older notification that has no
-- collapse id. The kind stands behind the apns-id, the length of the collapse id behind the entry's first 64 bytes.
local function isMeant(entry, kept, id, revision)
  if sub(entry, 1, 16) ~= id or (byte(entry, 65) or 0) > 0 or byte(entry, 17) % 4 ~= NOTIFY then return false end
  local timestamp, partition, offset = unpacked('>I8I4I8', revision)
  local keptTimestamp, keptPartition, keptOffset = unpacked('>I8I4I8', kept)
  return not isOlder(timestamp, partition, offset, keptTimestamp, keptPartition, keptOffset)
end

-- A notification without a collapse id has no revision of its own: a removal finds it in the mailbox by its apns-id.
local function withdraw(mailbox, id, revision)
  local all = call('HGETALL', mailbox)
  for i = 1, #all, 2 do
    if #all[i] == 20 and isMeant(all[i + 1], all[i], id, revision) then
      call('HDEL', mailbox, all[i])
      return all[i] .. id
    end
  end
  return ''
end

-- Whether the mailbox has the entry of an apns-id at a revision.
local function isKept(mailbox, revision, id)
  local entry = call('HGET', mailbox, revision)
  return entry and sub(entry, 1, 16) == id
end

-- The revision at which the mailbox has a request that comes again; nil if it has not. Of its records each may have had another time.
local function keptAt(mailbox, revision, id)
  if isKept(mailbox, revision, id) then return revision end
  for _, field in ipairs(call('HKEYS', mailbox)) do
    if #field == 20 and sub(field, 9) == sub(revision, 9) and isKept(mailbox, field, id) then return field end
  end
end

-- The revision a millisecond later. A request without an origin takes it if another request has its place. Then a device that shows the other
-- one takes this one for newer, and when it acknowledges the other one, only the other one's entry is deleted.
local function later(revision) return packed('>I8', unpacked('>I8', revision) + 1) .. sub(revision, 9, 20) end

-- include: refusals
-- include: placed
-- include: head

-- Most requests of a call have the same terms.
local application, formerTerms, isForPerson
-- Whether something is pending for one of the call's devices. Mostly nothing is, so all are asked for at once.
local isAnyPending
local function judge(number, device, mailbox, entry)
  local hash, source, comesAgain, revision, terms, collapse, rest = unpacked(HEAD, heads, position)
  position = rest
  local removesAll, waitsForPlace, isBounded
  if comesAgain > 3 then
    if comesAgain > 31 then
      if isAnyPending == nil then
        local pending = {}
        for n = 1, COUNT do pending[n] = 'h' .. sub(KEYS[2 * n - 1], 2) end
        isAnyPending = call('EXISTS', unpack(pending)) > 0
      end
      if isAnyPending and call('EXISTS', 'h' .. sub(device, 2)) == 1 then return add(number, SCHEDULES, false, false, '') end
      comesAgain = comesAgain - 32
    end
    removesAll, waitsForPlace, isBounded = comesAgain % 8 > 3, comesAgain % 16 > 7, comesAgain > 15
    comesAgain = comesAgain % 4
  end
  if terms ~= formerTerms then application, formerTerms, isForPerson = sub(terms, 1, 8), terms, #terms > 8 end
  local state = collapse == '' and call('HMGET', device, 'p', 'u', 'w') or call('HMGET', device, 'p', 'u', 'w', collapse)
  local presence, owner, window, known = state[1], state[2], state[3], state[4]
  -- include: refused
  -- One that has left, and to whose mailbox nothing came since.
  local left = presence == ''
  if presence and #presence ~= PRESENT then presence = false end
  local at = window and find(window, hash, 7, true)
  if at then
    at = placed(window, hash, at)
    if at and sub(window, at + 8, at + 11) ~= source then return add(number, DUPLICATE, false, false, '') end
  end
  local raised, isAgain, supersededBefore, isRecent, id = false, at, '', at, sub(entry, 1, 16)
  local isLate, floor, isBelow, floorTimestamp, isNamed
  if not refused and #owner > OWNER then
    isLate, floor, isBelow, floorTimestamp = ofRemovals().findFloor(device, owner, revision)
    -- It has no revision of its own, but a removal that came before it may have named it.
    if isLate and collapse == '' and not removesAll and not at then
      known = call('HGET', device, ofRemovals().fieldOf(id))
      isNamed = known
    end
    if removesAll and floor and sub(floor, 9, 20) == sub(revision, 9) and sub(floor, 21) == id then isAgain, raised = true, sub(floor, 1, 20) end
  end
  if known then
    -- With another length the parts that follow a verdict would be read as those of the next one.
    if #known ~= 36 and #known ~= 72 then error('a revision that cannot be read') end
    -- include: known
    -- What a removal names is older, also where it has taken the place.
    if isNamed and isContested then isStale = true end
    if isSame and timestamp ~= knownTimestamp then raised = sub(known, 1, 20) end
    -- Redriven: deliver it again where the device remembers it and its mailbox has no entry.
    if comesAgain > 0 and (comesAgain == 2 and at or isSame and not at) and not keptAt(mailbox, raised or revision, id) then
      isAgain = false
      if isSame then known = false end
    elseif isSame then
      isAgain, supersededBefore = true, sub(known, 37)
    end
    if known and not isAgain and not refused then
      if isStale then return add(number, STALE, false, false, sub(known, 1, 36)) end
      if isContested and timestamp <= knownTimestamp then
        raised = later(known)
      elseif timestamp < knownTimestamp then
        raised = sub(known, 1, 8) .. sub(revision, 9)
      end
    end
  elseif comesAgain > 0 then
    -- An entry that waits in the mailbox stays as it is, even if the window has forgotten its apns-id: an origin does not change what a
    -- request shows.
    local found = keptAt(mailbox, revision, id)
    raised = found or raised
    if found or comesAgain == 2 then isAgain = found end
  end
  if isNamed then known = false end
  if isBelow and waitsForPlace then isBelow = false end
  if isBelow and not isAgain then return add(number, STALE + CANCELED, false, false, floor) end
  if floorTimestamp and not isBelow and (not raised or unpacked('>I8', raised) < floorTimestamp) then
    raised = packed('>I8', floorTimestamp) .. sub(revision, 9)
  end
  local kept = raised or revision
  if isAgain then
    if removesAll and not refused then ofRemovals().findCanceled(mailbox, number, kept) end
    local isRouted = not refused and not isBelow and presence and isKept(mailbox, kept, id)
    return add(number, REPEAT, isRouted and presence, raised, supersededBefore)
  end
  if refused then return add(number, refused, false, false, '') end
  local newWindow, isNew = window, false
  if not isRecent then
    if window and #window < LONGEST and now - unpacked('>I4I2', window) < AGE then
      newWindow = window .. hash .. source
    else
      newWindow, isNew = renewed(window, hash, source)
    end
  end
  local isExpired, superseded = #entry == EXPIRED, ''
  -- Before anything else is written: where the place is another request's, nothing is.
  if not isExpired and call('HSETNX', mailbox, kept, entry) == 0 then
    local other = sub(call('HGET', mailbox, kept), 1, 16)
    if #other < 16 or other == id then
      call('HSET', mailbox, kept, entry)
    elseif comesAgain > 0 then
      return add(number, STALE, false, false, kept .. other)
    else
      call('HDEL', mailbox, kept)
      superseded = kept .. other
      repeat raised, kept = later(kept), later(kept) until call('HSETNX', mailbox, kept, entry) == 1
    end
  end
  if known and call('HDEL', mailbox, sub(known, 1, 20)) == 1 and superseded == '' then superseded = sub(known, 1, 36) end
  if isForPerson and superseded == '' and #terms > 24 and not isExpired then superseded = withdraw(mailbox, sub(terms, 25), revision) end
  if removesAll then
    ofRemovals().bar(device, owner, application, kept, kept .. id)
    ofRemovals().findCanceled(mailbox, number, kept)
  elseif #terms > 24 then
    ofRemovals().bar(device, owner, application, kept)
    local named = ofRemovals().fieldOf(sub(terms, 25))
    if named ~= collapse then call('HSET', device, named, kept .. id) end
  end
  -- It remembers what it has removed, so that this does not come again.
  local removed = superseded
  if isBounded and removed == '' and known and sub(known, 9, 20) == sub(revision, 9) then removed = sub(known, 1, 36) end
  local isChosen = isNew or (#newWindow - CHOSEN) % PERIOD == 0
  if collapse == '' then
    call('HSET', device, 'w', newWindow)
  else
    call('HSET', device, 'w', newWindow, collapse, kept .. id .. removed)
  end
  if isChosen and (isNew and collapse ~= '' and not known or call('HLEN', device) > revisions) then prune(device) end
  -- Until the next generation nothing that comes makes it longer; what is given once more may begin it. A presence may be that of a lane
  -- that was killed.
  if isChosen or left or isRecent then call('PEXPIRE', mailbox, keep + AGE * 1000) end
  -- An expired request may be the chosen one, and a redelivered one leaves the window as long as it is. Without a look at these, too, a mailbox
  -- would have no bound.
  if isChosen or isRecent then findOverflow(mailbox, number, presence and connectedMaximum or maximum) end
  if isExpired then return add(number, NEW, false, raised, superseded) end
  if left then call('HSET', device, 'p', '-') end
  return add(number, NEW, presence, raised, superseded)
end

local i = 0
local function judgeRest()
  while i < COUNT do
    local number = i + 1
    i = number
    judge(number, KEYS[2 * number - 1], KEYS[2 * number], ARGV[7 + number])
  end
end
while i < COUNT do
  local isJudged, failure = pcall(judgeRest)
  if not isJudged then
    local reason = type(failure) == 'table' and failure.err or failure
    -- An error of the script, or a key of another type, is about this device alone. Any other refusal of Redis is about all of the call.
    if sub(reason, 1, 12) ~= 'user_script:' and not find(reason, 'WRONGTYPE', 1, true) then return redis.error_reply(reason) end
    reason = sub(reason, 1, 200)
    verdicts[i], count = UNREADABLE, count + 1
    parts[count] = char(#reason) .. reason
  end
end
answer[1] = char(unpack(verdicts)) .. table.concat(parts)
return answer
