-- Sets each missing field of the cluster's identity.
--
-- KEYS: the identity.
-- ARGV: per field its name and its value.
-- Answers the value of each field after that.
local answer = {}
for i = 1, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
  answer[#answer + 1] = redis.call('HGET', KEYS[1], ARGV[i])
end
return answer
