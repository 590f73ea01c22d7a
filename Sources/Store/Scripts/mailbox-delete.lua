-- Deletes an entry of a mailbox if it belongs to this apns-id.
--
-- KEYS: the mailbox.
-- ARGV: the revision; the apns-id.
-- Answers 0.
local entry = redis.call('HGET', KEYS[1], ARGV[1])
if entry and string.sub(entry, 1, 16) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
