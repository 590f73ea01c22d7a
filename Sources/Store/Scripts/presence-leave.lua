-- Removes the presence of a session that closes, if it is still this session's.
--
-- It does not look for the markers: a lost bucket has no presence of this session.
--
-- KEYS: the device's hash; its mailbox; the markers of their bucket.
-- ARGV: presence 12; milliseconds to keep the mailbox.
-- Answers {1} if the presence was this session's, else {0}.
if redis.call('HGET', KEYS[1], 'p') ~= ARGV[1] then return {0} end
redis.call('HSET', KEYS[1], 'p', '')
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return {1}
