-- Gives a rebuilt bucket its markers and removes its guard, unless the guard is not there or another rebuild's: Redis was emptied meanwhile.
--
-- KEYS: the markers, the guard.
-- ARGV: the rebuild's name, then per field of the markers its name and its value.
-- Answers 1; or 0, and then nothing is written.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
for i = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('DEL', KEYS[2])
return 1
