-- Whether the first of two revisions is the older one. Each is given as the numbers that `struct.unpack('>I8I4I8', …)` reads.
-- Numbers compare alike under any locale of the server; strings do not.
local function earlier(timestamp, partition, offset, otherTimestamp, otherPartition, otherOffset)
  if timestamp ~= otherTimestamp then return timestamp < otherTimestamp end
  if partition ~= otherPartition then return partition < otherPartition end
  return offset < otherOffset
end
