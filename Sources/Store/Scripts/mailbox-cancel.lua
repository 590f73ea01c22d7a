-- Deletes entries that a removal of all has canceled.
--
-- KEYS: the device's hash; its mailbox.
-- ARGV: the revisions.
-- Answers what to cancel next: revision, entry, revision, entry and so on, oldest first.
-- include: earlier
-- include: fields
-- include: below
if redis.call('HDEL', KEYS[2], unpack(ARGV)) == 0 then return {} end
local kept = redis.call('HGET', KEYS[1], 'f')
return kept and #kept == 64 and below(KEYS[2], string.sub(kept, 29, 48)) or {}
