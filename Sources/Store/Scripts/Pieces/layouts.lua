-- The newest version of a mailbox entry that this program reads: a test compares it with `Layout.entry`.
local ENTRY = 4

-- Whether a newer program has written an entry: it stays as it is. `DeliveryEntryView.isNewer` is the same rule in Swift.
-- The version stands in the upper half of the byte behind the apns-id. The first 64 bytes have the same form in every version, and the top
-- bytes of the timestamp tell an entry from other data.
local function isNewer(entry)
  local form, high, low = string.byte(entry, 17), string.byte(entry, 41, 42)
  return form and form >= 16 * (ENTRY + 1) and #entry >= 64 and high == 0 and low == 0
end
