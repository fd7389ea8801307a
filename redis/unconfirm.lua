-- unconfirm: undoes the sale of a cart's line whose later line was refused. The
-- line is held again, or expired when it had been retaken, and the payment is
-- marked for refund, so that no repeat of its confirm sells again.
-- ARGV +1 hold id, +2 payment ref, +3 actor. A repeat: ok. Refused: existing
-- (not sold, or by another ref), returned (units have come back), unknown.
-- Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
local id, ref = arg(1), arg(2)
sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
if marked(h, ref) then return finish_hold('ok', h) end
if h[H_STATE] ~= 'sold' or h[H_REF] ~= ref then return finish_hold('existing', h) end
if h[H_RETURNED] > 0 then return finish_hold('returned', h) end
local units = h[H_UNITS]
add('on_hand', units)
add('sold', -units)
if h[H_RETAKEN] == 1 then
  h[H_STATE] = 'expired'
  h[H_RETAKEN] = 0
  h[H_REASON] = 'expired'
  h[H_ENDED] = NOW
  count(h[H_PERSON], -units)
  purge_later('h:' .. id, KEEP)
else
  h[H_STATE] = 'held'
  h[H_ENDED] = 0
  add('held', units)
  redis.call('ZREM', K_PURGE, 'h:' .. id)
end
h[H_REF] = ''
mark(h, ref)
put_hold(id, h)
hold_line('unconfirm', h[H_STATE], id, h, arg(3), { ref = ref })
return finish_hold('ok', h)
