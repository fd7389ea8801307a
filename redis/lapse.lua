-- lapse: ends an offer whose deadline has passed; only its entry's workflow
-- asks, so that needs no word of it.
-- ARGV +1 hold id, +2 "1" when its person was not told of it: that costs no turn,
-- and until the provider has sent a text there is no deadline to wait for; +3 "1" when
-- its text went out and nobody has said that it arrived, for the report of such.
-- Refused: early, claimed (pressed meanwhile; until its deadline), existing (ended
-- before), unknown.
-- Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
local id, not_told = arg(1), arg(2) == '1'
sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
local state = h[H_STATE]
if state == 'provisional' or state == 'held' then return finish_hold('claimed', h) end
if state ~= 'offered' then return finish_hold('existing', h) end
local left = not_told and h[H_SENT] == 0 and 0 or early(h[H_DEADLINE])
if left > 0 then
  local out = finish_hold('early', h)
  out[3] = left
  return out
end
local reason = not_told and 'not-told' or arg(3) == '1' and 'not-delivered' or 'lapsed'
give_back(id, h, 'lapsed', 'lapse', reason, 'offer timer')
if not_told then keep_turn(h[H_ENTRY]) else miss_turn(h[H_ENTRY], false) end
return finish_hold('ok', h)
