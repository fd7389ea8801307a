-- refund: marks a payment on the record before its refund is asked for, so
-- that no later confirm can sell by it.
-- ARGV +1 hold id, +2 payment ref, +3 actor. Refused as made-sale, with the
-- sale, when that payment made it. Answers {verdict, wake, ms left, ms now, 0,
-- record}.
if SHUT then return SHUT end
local id, ref = arg(1), arg(2)
sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
if h[H_STATE] == 'sold' and h[H_REF] == ref then return finish_hold('made-sale', h) end
if marked(h, ref) then return finish_hold('ok', h) end
mark(h, ref)
put_hold(id, h)
hold_line('refund', 'marked', id, h, arg(3), { units = 0, ref = ref })
return finish_hold('ok', h)
