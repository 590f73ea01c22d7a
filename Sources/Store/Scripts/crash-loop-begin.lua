-- Counts a begin. If another process has noted a group and not finished it, that process has crashed with it: this is counted once.
--
-- KEYS: the counts.
-- ARGV: the process; per partition its field and the offset.
-- Answers per partition {begins, first offset of the last noted group, how many offsets it spans or 0}. After these numbers come the
-- records from the offset on that crashed processes alone, each with the number of processes. At last 1 if the key held something else,
-- else 0.
-- include: mend
local mended = mend(KEYS[1], 'hash')
local LARGEST, MANY, LISTED = 2 ^ 53, 1000000, 1000
-- A count, or nothing if this script did not write the text.
local function number(text)
  local value = tonumber(text)
  if value and value >= 0 and value < LARGEST then return value end
end
local answer = {}
for i = 2, #ARGV, 2 do
  local field, offset = ARGV[i], ARGV[i + 1]
  local begins, first, count, ends = 1, -1, 0, {}
  local known = redis.call('HGET', KEYS[1], field)
  if known and string.match(known, '^%d+') == offset then
    begins = math.min(number(string.match(known, '%d+$')) or 0, MANY) + 1
  end
  redis.call('HSET', KEYS[1], field, offset .. ' ' .. begins)
  local last = redis.call('HGET', KEYS[1], field .. ' group')
  local place, size, process = string.match(last or '', '^(%d+) (%d+) (%S+)$')
  if place and number(place) and number(size) then
    first, count = number(place), number(size)
    if process ~= '-' and process ~= ARGV[1] then
      if count == 1 then
        local ended = field .. ' ended ' .. place
        local times = math.min(number(redis.call('HGET', KEYS[1], ended) or '') or 0, MANY)
        redis.call('HSET', KEYS[1], ended, times + 1)
      end
      redis.call('HSET', KEYS[1], field .. ' group', place .. ' ' .. size .. ' -')
    end
  end
  local all = redis.call('HGETALL', KEYS[1])
  for k = 1, #all, 2 do
    local name, place = string.match(all[k], '^(%a%d+) ended (%d+)$')
    if name == field then
      local times = math.min(number(all[k + 1]) or 0, MANY)
      if not number(place) or number(place) < tonumber(offset) then
        redis.call('HDEL', KEYS[1], all[k])
      elseif times > 0 and #ends < LISTED then
        ends[#ends + 1], ends[#ends + 2] = number(place), times
      end
    end
  end
  answer[#answer + 1] = {begins, first, count, unpack(ends)}
end
answer[#answer + 1] = mended
return answer
