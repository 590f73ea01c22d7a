import Redis

extension Judge {
  /// The one atomic call of the transform stage: judges requests in order, and applies them.
  ///
  /// A verdict is the same when a record comes again, so its events can simply be said again; so what was applied before is looked for before
  /// anything else, the registration included. What a verdict means is said at `Verdict`.
  ///
  /// What a device has in Redis may be nothing that can be read: that is the verdict on its own requests, and the others of the call have
  /// theirs. The least is done for each request. What only bounds what is kept is done for one of `SLACK` requests, which the length of the
  /// window of ids tells, and with each new generation of ids.
  static let script = RedisScript(
    """
    -- KEYS, per request: the device's hash, its mailbox; at last the markers of each bucket in which they lie.
    -- ARGV: now in seconds; milliseconds to keep a mailbox that nobody reads; the most entries of a mailbox; ids remembered; collapse
    --       revisions remembered; then per request
    --       id        hash of the apns-id 8, hash of its source 4; where it is redriven one byte more: 1, or 2 where the device has no
    --                 outcome of it
    --       revision  time 8, partition 4, offset 8
    --       collapse  'c' and the collapse id, or ''
    --       entry     as the mailbox keeps it; begins with the apns-id, and ends there where the request has expired
    --       terms     hash of the application 8; for a person also hash of the user 8, time of the record 8; where a removal names a
    --                 notification without collapse id these two, or zeros, and its apns-id 16
    -- Answers {-2} where Redis has lost one of the buckets. Else the verdicts in one string, then for each mailbox that has too much the
    -- number of the request that has found it, and revision, entry, revision, entry, … oldest first. A verdict is
    --       1   the verdict, and 8, 16 and 32 for each of the next three that follows
    --       12  presence
    --       20  revision as it is kept, where it is not the request's own
    --       36  revision and apns-id of what a stale one lost to, or of what was superseded in the mailbox
    --       or, for UNREADABLE, the bytes of the reason 1, the reason
    local STALE, NEW, REPEAT, DUPLICATE, UNREADABLE = 0, 1, 2, 3, 7
    local SLACK, AGE = 16, 600
    local EXPIRED, PRESENT = 16, 12
    local call, find, sub, byte, char, unpacked, packed =
      redis.call, string.find, string.sub, string.byte, string.char, struct.unpack, struct.pack
    local now, keep, maximum, remembered, revisions = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
    local KEYS, ARGV = KEYS, ARGV
    local COUNT = (#ARGV - 5) / 5
    if call('EXISTS', unpack(KEYS, 2 * COUNT + 1)) < #KEYS - 2 * COUNT then return {-2} end
    \(MailboxLua.overflow)
    local answer = {''}

    -- The parts of all verdicts, which become one string at last: each string costs.
    local parts, count = {}, 0
    local function add(verdict, presence, revision, other)
      local first = count + 1
      count = first
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
      parts[first] = char(verdict)
    end

    -- The oldest collapse revisions go when a device has too many, and all that are past the longest lifetime.
    local function prune(device)
      local all, kept = call('HGETALL', device), {}
      local limit = now * 1000 - tonumber(keep)
      for i = 1, #all, 2 do
        if byte(all[i]) == 99 then
          local t, p, o = unpacked('>I8I4I8', all[i + 1])
          if t < limit then call('HDEL', device, all[i]) else kept[#kept + 1] = {t, p, o, all[i]} end
        end
      end
      if #kept < revisions then return end
      table.sort(kept, function (a, b) return earlier(a[1], a[2], a[3], b[1], b[2], b[3]) end)
      for i = 1, #kept - revisions + math.floor(revisions / 8) do call('HDEL', device, kept[i][4]) end
    end

    -- Told once in a call for each mailbox, whose eviction begins with the first answer.
    local told = {}
    local function tell(box, number)
      if told[box] or call('HLEN', box) <= maximum then return end
      told[box] = true
      answer[#answer + 1] = number
      answer[#answer + 1] = overflow(box, maximum)
    end

    local function remember(w, id)
      local started, former = now, 0
      if w then started, former = unpacked('>I4I2', w) end
      if not w or now - started >= AGE then
        w = w and now - started < 2 * AGE and sub(w, 7 + former) or ''
        return packed('>I4I2', now, #w) .. w .. id, true
      elseif #w < 6 + 12 * (remembered + SLACK) then
        return w .. id
      end
      return packed('>I4I2', started, math.max(0, former - 12 * (SLACK + 1))) .. sub(w, -12 * (remembered - 1)) .. id
    end

    -- A notification without a collapse id has no revision of its own: a removal finds it in the mailbox by its apns-id.
    local function withdraw(box, id, own)
      local all = call('HGETALL', box)
      for i = 1, #all, 2 do
        if #all[i] == 20 and all[i] ~= own and sub(all[i + 1], 1, 16) == id then
          call('HDEL', box, all[i])
          return all[i] .. id
        end
      end
      return ''
    end

    \(JudgeLua.refusal)
    \(JudgeLua.place)

    local function judge(number, device, box, id, revision, collapse, entry, terms)
      local state = collapse == '' and call('HMGET', device, 'p', 'u', 'w') or call('HMGET', device, 'p', 'u', 'w', collapse)
      local presence, w, known = state[1], state[3], state[4]
      local refused = refusal(state[2], terms)
      local redriven = 0
      if #id > 12 then redriven, id = byte(id, 13), sub(id, 1, 12) end
      -- One that has left, and to whose mailbox nothing came since.
      local left = presence == ''
      if presence and #presence ~= PRESENT then presence = false end
      local at = place(w, id)
      if at and sub(w, at, at + 11) ~= id then return add(DUPLICATE, false, false, '') end
      local isRecent, raised, former = at, false, ''
      local t0, p0, o0, t, p, o
      local isSame = false
      if known then
        t0, p0, o0 = unpacked('>I8I4I8', known)
        t, p, o = unpacked('>I8I4I8', revision)
        isSame = p == p0 and o == o0
        if isSame and t ~= t0 then raised = sub(known, 1, 20) end
      end
      if redriven > 0 and (redriven == 2 and at or isSame and not at) and call('HEXISTS', box, raised or revision) == 0 then
        -- The device was given it, and has nothing of it any more: it is given it once more.
        at = nil
        if isSame then known = false end
      elseif isSame then
        at, former = 1, sub(known, 37)
      end
      if known and not at and not refused then
        if p == p0 and o < o0 or p ~= p0 and earlier(t, p, o, t0, p0, o0) then return add(STALE, false, false, sub(known, 1, 36)) end
        if t < t0 then raised = sub(known, 1, 8) .. sub(revision, 9) end
      end
      local kept = raised or revision
      if at then return add(REPEAT, not refused and presence and call('HEXISTS', box, kept) == 1 and presence, raised, former) end
      if refused then return add(refused, false, false, '') end
      local window, isNew = w, false
      if not isRecent then window, isNew = remember(w, id) end
      local isExpired, superseded = #entry == EXPIRED, ''
      if not isExpired then call('HSET', box, kept, entry) end
      if known and call('HDEL', box, sub(known, 1, 20)) == 1 then superseded = sub(known, 1, 36) end
      if superseded == '' and #terms > 24 then superseded = withdraw(box, sub(terms, 25), kept) end
      if collapse == '' then
        call('HSET', device, 'w', window)
      else
        call('HSET', device, 'w', window, collapse, kept .. sub(entry, 1, 16) .. superseded)
        if not known and (isNew or call('HLEN', device) > revisions) then prune(device) end
      end
      if isExpired then return add(NEW, false, raised, superseded) end
      -- The window goes from `remembered` to `remembered + SLACK` ids again and again: one of these lengths is chosen.
      local isChosen = isNew or (#window - 6 - 12 * (remembered + SLACK / 2)) % (12 * SLACK) == 0
      if not presence and (left or isChosen) then
        -- Until the next generation nothing that comes makes it longer.
        call('PEXPIRE', box, keep + AGE * 1000)
        if left then call('HSET', device, 'p', '-') end
      end
      if isChosen then tell(box, number) end
      return add(NEW, presence, raised, superseded)
    end

    local i = 0
    local function judgeRest()
      while i < COUNT do
        i = i + 1
        local k, a = 2 * i, 5 * i
        judge(i, KEYS[k - 1], KEYS[k], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
      end
    end
    while i < COUNT do
      local isJudged, failure = pcall(judgeRest)
      if not isJudged then
        local reason = type(failure) == 'table' and failure.err or failure
        -- What the program could not read, and a key of another type, are this device's; what else a command is refused for is so for all.
        if sub(reason, 1, 12) ~= 'user_script:' and not find(reason, 'WRONGTYPE', 1, true) then return redis.error_reply(reason) end
        reason = sub(reason, 1, 200)
        count = count + 1
        parts[count] = char(UNREADABLE, #reason) .. reason
      end
    end
    answer[1] = table.concat(parts)
    return answer
    """)
}
