-- The rule of newness: whether a published revision is stale beside another one. Each is given as the numbers that
-- `struct.unpack('>I8I4I8', …)` reads. `Revision.isOlder(than:)` is the same rule in Swift, and `NewnessTests` holds the two together.
-- In one partition the offset decides, whatever the broker's clock has said.
local function isOlder(timestamp, partition, offset, otherTimestamp, otherPartition, otherOffset)
  if partition == otherPartition then return offset < otherOffset end
  if timestamp ~= otherTimestamp then return timestamp < otherTimestamp end
  return partition < otherPartition
end
