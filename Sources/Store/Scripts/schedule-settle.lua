-- Forgets that the target of a schedule has pending ones, where that is over and the state is the one that Kafka has.
--
-- Not before: a request that has ended the last one finds its schedule once more when it is done again.
--
-- KEYS: the target's schedules; which of them are pending; the applications that have pending ones for the target; what must be there where
--       the bucket is used.
-- ARGV: the identifier; the first HEAD bytes of the state that Kafka has; the application.
-- Answers {state}, which is empty where there is none, or {-2} where Redis has lost the bucket.
local HEAD = 46
local call = redis.call
if call('EXISTS', KEYS[4]) == 0 then return {-2} end
local state = call('HGET', KEYS[1], ARGV[1]) or ''
if string.sub(state, 1, HEAD) == ARGV[2] and call('ZCARD', KEYS[2]) == 0 then call('SREM', KEYS[3], ARGV[3]) end
return {state}
