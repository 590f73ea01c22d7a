import Redis
import Worker

/// The one atomic call of the transform stage: judges the requests for devices of one bucket, in order, and applies them.
///
/// A verdict is the same when a record comes again, so its events can simply be said again. What a verdict means is said at `Verdict`.
enum JudgeScript {
  /// Arguments that precede those of the first request.
  static let commonArguments = 5
  /// Arguments of each request.
  static let argumentsPerRequest = 5

  /// A function of both scripts.
  private static let surplus = """
    \(MailboxScript.fields)
    -- The oldest entries of a mailbox beyond the bound, as many as one eviction takes: revision, entry, revision, entry and so on.
    local function surplus(box, bound)
      local over, oldest = math.min(redis.call('HLEN', box) - bound, \(Evictions.longest)), {}
      if over <= 0 then return oldest end
      local all = fields(box)
      for i = 1, over do
        oldest[2 * i - 1] = all[i][4]
        oldest[2 * i] = redis.call('HGET', box, all[i][4])
      end
      return oldest
    end
    """

  /// The script itself.
  static let script = RedisScript(
    """
    -- KEYS, per request: the device's hash, its mailbox; at last the markers of the bucket in which all of them lie.
    -- ARGV: now in seconds; milliseconds to keep a mailbox that nobody reads; mailbox bound; ids remembered; collapse
    --       revisions remembered; then per request
    --       id        hash of the apns-id 8, hash of its source 4
    --       revision  time 8, partition 4, offset 8
    --       collapse  'c' and the collapse id, or ''
    --       entry     as the mailbox keeps it; begins with the apns-id
    --       terms     mode 1, hash of the application 8, hash of the user 8 (zeros: any), time of the record 8,
    --                 and, where a removal names a notification without collapse id, its apns-id 16
    -- Answers {-2} where Redis has lost the bucket, else, per request: verdict, presence or false, revision as kept, what else the verdict has to say (see Verdict).
    local STALE, NEW, REPEAT, DUPLICATE, FOREIGN, UNREGISTERED, WRONG_APPLICATION = 0, 1, 2, 3, 4, 5, 6
    local EXPIRED_MODE = 1
    local SLACK, AGE, JOINED_LATE = 16, 600, 5000
    local call, find, sub, byte, unpacked, packed = redis.call, string.find, string.sub, string.byte, struct.unpack, struct.pack
    local now, keep, bound, remembered, revisions = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
    \(surplus)
    local ANYBODY = string.rep('\\0', 8)

    -- Revisions in order, whatever the server's locale compares strings by.
    local function earlier(a, b)
      local t, p, o = unpacked('>I8I4I8', a)
      local t2, p2, o2 = unpacked('>I8I4I8', b)
      if t ~= t2 then return t < t2 end
      if p ~= p2 then return p < p2 end
      return o < o2
    end

    -- The oldest collapse revisions go when a device has too many, and all that are past the longest lifetime.
    local function prune(device)
      local all, kept = call('HGETALL', device), {}
      local limit = now * 1000 - tonumber(keep)
      for i = 1, #all, 2 do
        if byte(all[i]) == 99 then
          if unpacked('>I8', all[i + 1]) < limit then call('HDEL', device, all[i]) else kept[#kept + 1] = sub(all[i + 1], 1, 20) .. all[i] end
        end
      end
      if #kept < revisions then return end
      table.sort(kept, earlier)
      for i = 1, #kept - revisions + math.floor(revisions / 8) do call('HDEL', device, sub(kept[i], 21)) end
    end

    -- Told once in a call for each mailbox, whose eviction begins with the first answer, and once for SLACK entries that come: what is
    -- being evicted would be told with each of them.
    local told = {}
    local function tell(box)
      if told[box] then return nil end
      told[box] = true
      return surplus(box, bound)
    end

    local function remember(device, w, id)
      local started, former = now, 0
      if w then started, former = unpacked('>I4I2', w) end
      if not w or now - started >= AGE then
        w = w and now - started < 2 * AGE and sub(w, 7 + former) or ''
        return packed('>I4I2', now, #w) .. w .. id, w ~= ''
      elseif #w < 6 + 12 * (remembered + SLACK) then
        return w .. id
      end
      return packed('>I4I2', started, math.max(0, former - 12 * (SLACK + 1))) .. sub(w, -12 * (remembered - 1)) .. id
    end

    -- A notification without a collapse id has no revision of its own: a removal finds it in the mailbox by its apns-id.
    local function withdraw(box, id)
      local all = call('HGETALL', box)
      for i = 1, #all, 2 do
        if #all[i] == 20 and sub(all[i + 1], 1, 16) == id then
          call('HDEL', box, all[i])
          return all[i] .. id
        end
      end
      return ''
    end

    local function judge(device, box, id, revision, collapse, entry, terms)
      local state = collapse == '' and call('HMGET', device, 'p', 'u', 'w') or call('HMGET', device, 'p', 'u', 'w', collapse)
      local presence, owner, w, known = state[1], state[2], state[3], state[4]
      if not owner then return {UNREGISTERED, false} end
      if sub(owner, 17, 24) ~= sub(terms, 2, 9) then return {WRONG_APPLICATION, false} end
      local user = sub(terms, 10, 17)
      if user ~= ANYBODY and (sub(owner, 1, 8) ~= user or unpacked('>I8', owner, 9) > unpacked('>I8', terms, 18) + JOINED_LATE) then
        return {FOREIGN, false}
      end
      local at = w and find(w, sub(id, 1, 8), 7, true)
      while at and (at - 7) % 12 ~= 0 do at = find(w, sub(id, 1, 8), at + 1, true) end
      if at and sub(w, at, at + 11) ~= id then return {DUPLICATE, false} end
      local said = ''
      if known then
        local t0, p0, o0 = unpacked('>I8I4I8', known)
        local t, p, o = unpacked('>I8I4I8', revision)
        if p == p0 and o == o0 then
          at, revision, said = 1, sub(known, 1, 20), sub(known, 37)
        elseif not at and (p == p0 and o < o0 or p ~= p0 and (t < t0 or t == t0 and p < p0)) then
          return {STALE, false, sub(known, 1, 20), sub(known, 21, 36)}
        elseif not at and t < t0 then
          revision = sub(known, 1, 8) .. sub(revision, 9)
        end
      end
      if at then return {REPEAT, call('HEXISTS', box, revision) == 1 and presence, revision, said} end
      local window, aged = remember(device, w, id)
      local displaced = ''
      if known and call('HDEL', box, sub(known, 1, 20)) == 1 then displaced = sub(known, 1, 36) end
      if displaced == '' and #terms > 25 then displaced = withdraw(box, sub(terms, 26)) end
      if collapse == '' then
        call('HSET', device, 'w', window)
      else
        call('HSET', device, 'w', window, collapse, revision .. sub(entry, 1, 16) .. displaced)
        if not known and (aged or call('HLEN', device) > revisions) then prune(device) end
      end
      if byte(terms) == EXPIRED_MODE then return {NEW, false, revision, displaced} end
      call('HSET', box, revision, entry)
      if not presence then call('PEXPIRE', box, keep) end
      -- Of a device that is there, which empties its mailbox itself, one request in SLACK looks, by chance.
      local over = (not presence or byte(id, 8) < 256 / SLACK) and call('HLEN', box) - bound or 0
      local full = over >= SLACK and (presence or over % SLACK == 0)
      return {NEW, presence, revision, displaced, full and tell(box) or nil}
    end

    if call('EXISTS', KEYS[#KEYS]) == 0 then return {-2} end
    local verdicts = {}
    for i = 1, (#KEYS - 1) / 2 do
      local k, a = 2 * i, 5 * i
      verdicts[i] = judge(KEYS[k - 1], KEYS[k], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
    end
    return verdicts
    """)

  /// Deletes entries that a full mailbox evicted, after Kafka has their events, and keeps for the device which revisions it has missed.
  ///
  /// Keys: the device's hash, its mailbox. Arguments: the mailbox bound; then the revisions, oldest first. Answers what is to be evicted next.
  static let evict = RedisScript(
    """
    \(surplus)
    local bound = tonumber(table.remove(ARGV, 1))
    if redis.call('HDEL', KEYS[2], unpack(ARGV)) == 0 then return {} end
    local gap = redis.call('HGET', KEYS[1], 'g')
    redis.call('HSET', KEYS[1], 'g', (gap and string.sub(gap, 1, 20) or ARGV[1]) .. ARGV[#ARGV])
    return surplus(KEYS[2], bound)
    """)
}
