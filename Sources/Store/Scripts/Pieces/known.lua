-- Compares the revision of a request, `revision`, with the one that the device keeps for its collapse id, `known`.
-- `Revision.judging` is the same in Swift, and `NewnessTests` holds the two together.
-- Sets `isSame`, `isContested`, `isStale` and both revisions' numbers. Needs the locals `id`, the request's apns-id, `comesAgain`, `sub`
-- and `unpacked`, and the piece `newness`. It is no function, for it runs for each request that has a collapse id.
local knownTimestamp, knownPartition, knownOffset = unpacked('>I8I4I8', known)
local timestamp, partition, offset = unpacked('>I8I4I8', revision)
local isOfPlace = partition == knownPartition and offset == knownOffset
-- Two requests name one place: one of them has an origin that is not its own, or is a removal of what has the place. Then the field has the
-- apns-id of what was removed at its end.
local isContested = isOfPlace and sub(known, 21, 36) ~= id
local isSame = isOfPlace and not isContested
local isStale = isContested and (comesAgain > 0 or sub(known, 57) == id)
  or isOlder(timestamp, partition, offset, knownTimestamp, knownPartition, knownOffset)
