-- Who has how much pending in a bucket.
--
-- KEYS: the due times of each partition.
-- ARGV: the maximum number of applications in the answer.
-- Answers how many are of targets that no device was registered for; the number of the partition with most due times, and how many these
-- are; then each application and how many it holds, the most first.
local call, sub = redis.call, string.sub
-- include: mend
-- include: holders
local strangers, fullest, most, held, applications = 0, 0, 0, {}, {}
for number, times in ipairs(KEYS) do
  local holders, others = holdersOf(times)
  local count, all = call('ZCARD', times), call('HGETALL', holders)
  strangers = strangers + call('HLEN', others)
  if count > most then fullest, most = number, count end
  for i = 1, #all, 2 do
    if not held[all[i]] then applications[#applications + 1] = all[i] end
    held[all[i]] = (held[all[i]] or 0) + (tonumber(all[i + 1]) or 0)
  end
end
table.sort(applications, function (a, b) return held[a] > held[b] or held[a] == held[b] and a < b end)
local answer = {strangers, fullest, most}
for i = 1, math.min(#applications, tonumber(ARGV[1])) do
  answer[#answer + 1] = applications[i]
  answer[#answer + 1] = held[applications[i]]
end
return answer
