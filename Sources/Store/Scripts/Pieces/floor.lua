-- Reads which requests the removals of a device bar. Needs the pieces `earlier` and `newness`, and the locals `call`, `sub` and `unpacked`.
--
-- The field `f` of a device has the hash of the application 8 and its horizon 20. If all notifications were removed, the floor follows: the
-- revision 20 and the apns-id 16 of that removal. The horizon is the newest revision of the removals of all, and of those by an apns-id. It
-- also follows the owner in the field `u`, so that a newer request, like nearly all, costs no further call.
local OWNER, HORIZON = 24, 44
local FLOOR_BEGIN = 29

-- The floor of a device for the application of its owner, and whether a revision lies below it; both false if no removal bars so old a
-- revision. `isLate` tells whether one does, with or without a floor.
-- Returns isLate, floor, isBelow, and the timestamp that a revision above the floor takes if the broker's clock went back.
local function findFloor(device, owner, revision)
  if #owner ~= HORIZON then return false end
  local timestamp, partition, offset = unpacked('>I8I4I8', revision)
  local horizonTimestamp, horizonPartition, horizonOffset = unpacked('>I8I4I8', owner, OWNER + 1)
  if not earlier(timestamp, partition, offset, horizonTimestamp, horizonPartition, horizonOffset)
    and (partition ~= horizonPartition or offset > horizonOffset) then return false end
  local kept = call('HGET', device, 'f')
  if not kept or #kept ~= 28 and #kept ~= 64 then error('a floor that cannot be read') end
  if #kept == 28 then return true end
  local floorTimestamp, floorPartition, floorOffset = unpacked('>I8I4I8', kept, FLOOR_BEGIN)
  local floor = sub(kept, FLOOR_BEGIN)
  return true, floor, isOlder(timestamp, partition, offset, floorTimestamp, floorPartition, floorOffset),
    partition == floorPartition and timestamp < floorTimestamp and floorTimestamp
end
