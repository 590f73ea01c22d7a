-- The one atomic call of the transform stage: judges requests in order, and applies them.
--
-- What was applied has the same verdict when it is read again, as long as the device remembers it, so its events can simply be emitted again.
-- Therefore the script looks for that before it looks at anything else, the registration included. What was refused, or has lost, is judged by
-- what the device keeps then. `Verdict` says what each verdict means.
--
-- Begin to read at `judge`: its steps stand in the order in which they decide. What few requests need lies in the piece `rare`.
--
-- KEYS: per request the device's hash and its mailbox; at last the markers of each bucket in which they lie.
-- ARGV: a number each from 1 to 6, then strings:
--        1  now, in seconds
--        2  how long a mailbox that nobody reads and a revision are kept, in milliseconds
--        3  maximum of entries in the mailbox of a device that is away
--        4  maximum of entries in the mailbox of a connected device
--        5  apns-ids that a device remembers
--        6  collapse revisions that a device remembers
--        7  the heads of all requests, one behind the other: see the piece `head`
--        8  and so on: the entry of each request, as the mailbox keeps it. It begins with the apns-id, and ends there if the request has expired
-- Answers {-2} if Redis has lost one of the buckets, else these:
--        1  a byte for each request, its verdict: 0 stale, 1 new, 2 a repeat, 3 a duplicate, 4 to 6 see the piece `refusals`, 7 unreadable; or
--           128, something is pending for the device, and nothing was judged: the schedules are to be asked first.
--           Then the parts of each request. Its byte is larger by these numbers:
--               8  the presence follows, 12 bytes
--              16  the revision as it is kept follows, 20 bytes, where it is not the request's own
--              32  a revision and an apns-id follow, 36 bytes: what a stale request lost to, or what was superseded in the mailbox
--              64  of a stale request: it was canceled, for it lost to a removal of all notifications
--           Of an unreadable one, whose device has data that cannot be read: a byte with the length of the reason, and the reason.
--        2  and so on: for each mailbox that has too many entries the number of the request that has found it; for each that has what a
--           removal of all may cancel its negative number. Another script reads which entries end, since that takes the whole mailbox.
local call, unpacked, sub, find, packed, byte = redis.call, struct.unpack, string.sub, string.find, struct.pack, string.byte
local KEYS, ARGV = KEYS, ARGV
local now, keep, maximum, connectedMaximum = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local remembered, revisions, heads, COUNT = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], #ARGV - 7
-- The window of ids grows from `remembered` to `remembered + SLACK` ids again and again, and for AGE seconds, which are its generation. The
-- script prunes, and looks at the size of the mailbox, only at the length CHOSEN and with each new generation: for about one id in 17.
local SLACK, AGE = 16, 600
local LONGEST, CHOSEN, PERIOD = 6 + 12 * (remembered + SLACK), 6 + 12 * (remembered + SLACK / 2), 12 * SLACK
if call('EXISTS', unpack(KEYS, 2 * COUNT + 1)) < #KEYS - 2 * COUNT then return {-2} end

-- The number of the request at hand, and where its head begins; then what is the same for most requests of a call.
local number, position, isAnyPending, application, formerTerms = 0, 1
-- The verdicts, and the parts that follow them; the mailboxes, and the devices of mailboxes, that the answer names already.
local answer, verdicts, parts, count, named = {''}, {}, {}, 0

-- Judges the requests that are left. All functions are made in here. Each call makes them anew, and Lua searches the script for each
-- variable that a function uses. The functions in here share what this one has found.
local function judgeRest()
  -- include: head
  -- include: earlier
  -- include: newness
  -- include: known
  -- include: refusals
  -- include: placed

  -- Answers the request. Each string costs, so all parts become one string at last.
  local function say(verdict, presence, raised, other)
    if presence then
      verdict, count = verdict + 8, count + 1
      parts[count] = presence
    end
    if raised then
      verdict, count = verdict + 16, count + 1
      parts[count] = raised
    end
    if other and other ~= '' then
      verdict, count = verdict + 32, count + 1
      parts[count] = other
    end
    verdicts[number] = verdict
  end

  -- Whether something is pending for the device. Mostly nothing is for any device of the call, so all are asked for at once.
  local function isPending(device)
    if isAnyPending == nil then
      local pending = {}
      for n = 1, COUNT do pending[n] = 'h' .. sub(KEYS[2 * n - 1], 2) end
      isAnyPending = call('EXISTS', unpack(pending)) > 0
    end
    return isAnyPending and call('EXISTS', 'h' .. sub(device, 2)) == 1
  end

  -- The window of ids with one more, and whether its generation is new.
  local function grown(window, hash, source)
    if window and #window < LONGEST and now - unpacked('>I4I2', window) < AGE then return window .. hash .. source, false end
    -- It is the first, or the window has become too long or too old.
    local started, former = 0, 0
    if window then started, former = unpacked('>I4I2', window) end
    if now - started < AGE then
      return packed('>I4I2', started, math.max(0, former - 12 * (SLACK + 1))) .. sub(window, -12 * (remembered - 1)) .. hash .. source, false
    end
    local rest = window and now - started < 2 * AGE and sub(window, 7 + former) or ''
    return packed('>I4I2', now, #rest) .. rest .. hash .. source, true
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

  -- What few requests need is made for the first of them.
  local rare
  local function rarely()
    if rare then return rare end
    -- include: floor
    -- include: layouts
    -- include: entries
    -- include: rare
    rare = {isKept = isKept, isAway = isAway, redriven = redriven, contested = contested, name = name, standing = standing, nameCanceled = nameCanceled,
      bar = bar, removeNamed = removeNamed}
    return rare
  end

  -- Judges a request. The first step that knows the verdict says it.
  local function judge(device, mailbox, entry)
    local STALE, NEW, REPEAT, DUPLICATE, CANCELED, SCHEDULES = 0, 1, 2, 3, 64, 128
    -- Lengths: of an entry that has expired, a presence, an owner without a horizon, terms without an apns-id.
    local EXPIRED, PRESENT, OWNER, TERMS = 16, 12, 24, 24
    local hash, source, flags, revision, terms, collapse, rest = unpacked(HEAD, heads, position)
    position = rest

    -- 1. Something is pending, and the request may take its place.
    local wasKept
    if flags > 31 then
      wasKept = flags > 63
      if wasKept then flags = flags - 64 end
      if flags > 31 then
        if isPending(device) then return say(SCHEDULES) end
        flags = flags - 32
      end
    end
    local redrive, removesAll, isOfPending, isBounded = flags
    if flags > 0 then
      redrive, removesAll = bit.band(flags, 3), bit.band(flags, 4) > 0
      isOfPending, isBounded = bit.band(flags, 8) > 0, bit.band(flags, 16) > 0
    end
    local state = collapse == '' and call('HMGET', device, 'p', 'u', 'w') or call('HMGET', device, 'p', 'u', 'w', collapse)
    local presence, owner, window, known = state[1], state[2], state[3], state[4]
    local hasLeft = presence == ''
    if presence and #presence ~= PRESENT then presence = false end

    -- 2. Its apns-id was applied from another record. The window has it at this position.
    local at = window and find(window, hash, 7, true)
    if at then
      at = placed(window, hash, at)
      if at and sub(window, at + 8, at + 11) ~= source then return say(DUPLICATE) end
    end

    -- 3. Whether it was applied before: the window has it, or it is the newest of its collapse id, or the newest removal of all. That counts
    -- though the device may be another person's by now.
    if terms ~= formerTerms then application, formerTerms = sub(terms, 1, 8), terms end
    local refused = refusal(owner, application, terms)
    -- known     what the device keeps for the identifier, or the removal that has named the request
    -- newer     the revision to keep beside `known`; nil if the request is stale
    -- isSame    `known` is of this very request
    -- isAgain   it was applied before, whatever shows that
    -- kept      the revision at which the device keeps it, or is to keep it
    -- floor     the removal of all that bars it
    local id, isAgain, kept, newer, isSame, naming, floor, floorTimestamp = sub(entry, 1, 16), at, revision
    if not refused and #owner > OWNER then
      local ownFloor
      naming, floor, floorTimestamp, ownFloor = rarely().standing(device, owner, revision, id, collapse, removesAll, isOfPending, at)
      -- It is itself the newest removal of all.
      if ownFloor then isAgain, kept = at or ownFloor, ownFloor end
      known = naming or known
    end
    if known then
      if #known ~= 36 and #known ~= 72 then error('a revision that cannot be read') end
      newer, isSame = judging(known, revision, id, naming or redrive > 0)
      if isSame then kept = newer end
    end
    if redrive > 0 then
      isAgain, kept = rarely().redriven(mailbox, id, redrive, isAgain, kept, known, isSame)
      -- What is delivered once more supersedes nothing.
      if isSame and not isAgain then known = false end
    else
      isAgain = isAgain or isSame
    end

    -- 4. What bars it, unless it was applied: the registration, a newer revision, a removal of all.
    if not isAgain then
      if refused then return say(refused) end
      -- A removal of what waits for a place does not take what waits for its device.
      local isStale = known and (not newer or isBounded and isOfPending and rarely().isAway(mailbox, known, revision))
      if isStale or floor then
        -- A rebuild may judge what has won first, though the device had this one before.
        if wasKept then call('HSET', device, 'w', (grown(window, hash, source))) end
        if isStale then return say(STALE, false, false, sub(known, 1, 36)) end
        return say(STALE + CANCELED, false, false, floor)
      end
      kept = newer or kept
    end
    -- Newer than a removal of all by its offset, though the broker's clock went back.
    if floorTimestamp and unpacked('>I8', kept) < floorTimestamp then kept = packed('>I8', floorTimestamp) .. sub(revision, 9) end

    -- 5. A repeat: the same answer, and the route if it still lies in the mailbox.
    if isAgain then
      if removesAll and not refused then rarely().nameCanceled(device, mailbox, kept) end
      local isRouted = presence and not refused and not floor and rarely().isKept(mailbox, kept, id)
      return say(REPEAT, isRouted and presence, kept ~= revision and kept, isSame and sub(known, 37))
    end

    -- 6. The mailbox gets it, and loses what it supersedes. Nothing is written before its place is known to be its own.
    local ids, isNew, isExpired, superseded, removed = window, false, #entry == EXPIRED, ''
    if not at then ids, isNew = grown(window, hash, source) end
    if not isExpired and call('HSETNX', mailbox, kept, entry) == 0 then
      kept, superseded = rarely().contested(mailbox, kept, entry, id, redrive, isBounded)
      if not kept then return say(STALE, false, false, superseded) end
    end
    -- The removal that has named it is older, and stays.
    if naming then known = false end
    if known and call('HDEL', mailbox, sub(known, 1, 20)) == 1 and superseded == '' then superseded = sub(known, 1, 36) end
    if removesAll then
      rarely().bar(device, owner, application, kept, kept .. id)
      rarely().nameCanceled(device, mailbox, kept)
    elseif #terms > TERMS then
      superseded = rarely().removeNamed(device, mailbox, owner, terms, revision, collapse, kept, id, superseded, isExpired, isOfPending)
    end

    -- 7. The device remembers its apns-id, the newest revision of its collapse id, and what that has removed, so that it does not come again.
    if collapse == '' then
      call('HSET', device, 'w', ids)
    else
      removed = superseded
      if isBounded and removed == '' and known and sub(known, 9, 20) == sub(revision, 9) then removed = sub(known, 1, 36) end
      call('HSET', device, 'w', ids, collapse, kept .. id .. removed)
    end

    -- 8. The bounds. Between chosen requests nothing moves the expiry of the mailbox, hence AGE more. A redelivered entry may be its first, and
    -- leaves the window as long as it is, so it sets the expiry, too. An expired request may be the chosen one, and looks at the mailbox.
    local isChosen = isNew or (#ids - CHOSEN) % PERIOD == 0
    if isChosen and (isNew and collapse ~= '' and not known or call('HLEN', device) > revisions) then prune(device) end
    if isChosen or hasLeft or at then call('PEXPIRE', mailbox, keep + AGE * 1000) end
    if (isChosen or at) and call('HLEN', mailbox) > (presence and connectedMaximum or maximum) then rarely().name(mailbox, number) end
    if isExpired then return say(NEW, false, kept ~= revision and kept, superseded) end
    if hasLeft then call('HSET', device, 'p', '-') end
    return say(NEW, presence, kept ~= revision and kept, superseded)
  end

  while number < COUNT do
    number = number + 1
    judge(KEYS[2 * number - 1], KEYS[2 * number], ARGV[7 + number])
  end
end

while number < COUNT do
  local isJudged, failure = pcall(judgeRest)
  if not isJudged then
    local reason = type(failure) == 'table' and failure.err or failure
    -- What the program could not read, and a key of another type, are this device's; what else a command is refused for is so for all.
    if sub(reason, 1, 12) ~= 'user_script:' and not find(reason, 'WRONGTYPE', 1, true) then return redis.error_reply(reason) end
    reason = sub(reason, 1, 200)
    local UNREADABLE = 7
    verdicts[number], count = UNREADABLE, count + 1
    parts[count] = string.char(#reason) .. reason
  end
end
answer[1] = string.char(unpack(verdicts)) .. table.concat(parts)
return answer
