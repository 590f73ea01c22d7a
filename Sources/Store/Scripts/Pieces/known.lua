-- Judges a request at `revision` beside the revision that its device keeps for the collapse id, `known`. `Revision.judging` is the same in
-- Swift, and `NewnessTests` holds the two together. `yields` says that it leaves its place to another request.
-- Returns the revision to keep, or nil for a stale request; and whether it is the request that the device knows. Needs the locals `packed`,
-- `sub` and `unpacked`, and the piece `newness`.
local function judging(known, revision, id, yields)
  local knownTimestamp, knownPartition, knownOffset = unpacked('>I8I4I8', known)
  local timestamp, partition, offset = unpacked('>I8I4I8', revision)
  if partition == knownPartition and offset == knownOffset then
    if sub(known, 21, 36) == id then return timestamp == knownTimestamp and revision or sub(known, 1, 20), true end
    -- Two requests name one place: one of them has an origin that is not its own, or is a removal of what has the place. Then the field has
    -- the apns-id of what was removed at its end.
    if yields or sub(known, 57) == id then return nil, false end
    -- A device that is shown the other one takes this for newer, and its acknowledgement of the other one deletes only the other's entry.
    return timestamp > knownTimestamp and revision or packed('>I8', knownTimestamp + 1) .. sub(revision, 9), false
  end
  if isOlder(timestamp, partition, offset, knownTimestamp, knownPartition, knownOffset) then return nil, false end
  return timestamp < knownTimestamp and sub(known, 1, 8) .. sub(revision, 9) or revision, false
end
