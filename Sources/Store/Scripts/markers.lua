-- Sets each field of a bucket's markers whose value is as expected.
--
-- KEYS: the markers of a bucket.
-- ARGV: the bucket's number; per field its name, the expected value or nothing, or `*` for any, the new value.
-- Answers {-2} where Redis does not have the bucket, else the number and the value of each field where something else stands.
if redis.call('HGET', KEYS[1], 'i') ~= ARGV[1] then return {-2} end
local fields = {}
for i = 2, #ARGV, 3 do fields[#fields + 1] = ARGV[i] end
local found, others, set = redis.call('HMGET', KEYS[1], unpack(fields)), {}, {}
for i = 1, #fields do
  local value, expected, new = found[i] or '', ARGV[3 * i], ARGV[3 * i + 1]
  if value == expected or expected == '*' then
    set[#set + 1], set[#set + 2] = fields[i], new
  elseif value ~= new then
    others[#others + 1], others[#others + 2] = i - 1, value
  end
end
if #set > 0 then redis.call('HSET', KEYS[1], unpack(set)) end
return others
