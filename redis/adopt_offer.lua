-- adopt (offer): the entry's workflow knows of the offer, or of what became of
-- it, and it leaves the outbox.
-- ARGV +1 hold id. Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
sweep()
local h = touch_hold(arg(1))
outbox_drop('o:' .. arg(1))
return finish_hold(h and 'ok' or 'unknown', h)
