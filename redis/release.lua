-- release: ends a live hold and frees its units.
-- ARGV +1 hold id, +2 reason, +3 actor, +4 the deadline in ms that the caller
-- knows, for reason expired, which is refused as early before it, before the
-- record's own, and while a reopened gate is quiet, +5 "1" by the door that takes
-- back a lease of its own: it ends as if its time were up, swept, and the id is
-- not spent; a hold that has its owner stays as it is, +6 "1" to be told only: ok
-- when it would end now.
-- A repeat answers "existing". {verdict, wake, ms left, ms now, 0, record}
if SHUT then return SHUT end
local id, reason = arg(1), arg(2)
sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
local state = h[H_STATE]
if state ~= 'held' and state ~= 'provisional' and state ~= 'offered' then return finish_hold('existing', h) end
if arg(5) == '1' then
  if state ~= 'provisional' then return finish_hold('existing', h) end
  end_lease(id, h)
  return finish_hold('ok', h)
end
if reason == 'expired' then
  local left = early(math.max(h[H_DEADLINE], num(4)))
  if left > 0 then
    local out = finish_hold('early', h)
    out[3] = left
    return out
  end
end
if arg(6) == '1' then return finish_hold('ok', h) end
give_back(id, h, reason == 'expired' and 'expired' or 'released', 'release', reason, arg(3))
if reason == 'shopper' or reason == 'left' then
  end_entry(h[H_ENTRY], 'left', true)
else
  miss_turn(h[H_ENTRY], true)
end
return finish_hold('ok', h)
