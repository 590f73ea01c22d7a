-- Sets each field of the cluster's identity that is not there.
--
-- KEYS: the identity.
-- ARGV: per field its name and its value.
-- Answers what stands in each field then.
local answer = {}
for i = 1, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
  answer[#answer + 1] = redis.call('HGET', KEYS[1], ARGV[i])
end
return answer
