-- The verdicts and the functions of the piece `refused`. Needs the locals `sub` and `unpacked`.
local WRONG_USER, UNREGISTERED, WRONG_APPLICATION = 4, 5, 6
local ANYBODY, JOINED_LATE = string.rep('\0', 8), 5000
-- Whether the device belongs to another person than the terms name, or did when the request was published.
local function isAnothers(owner, terms)
  local user = sub(terms, 9, 16)
  return user ~= ANYBODY and (sub(owner, 1, 8) ~= user or unpacked('>I8', owner, 9) > unpacked('>I8', terms, 17) + JOINED_LATE)
end
