-- snapshot: the counters as they are this instant. An ended lease counts as free,
-- or as offered when it came from an offer: it is swept, and what that frees is the
-- line's, as in any verb. Where no lease has ended nothing is written. It asks for no
-- wake, and leaves it to the next verb.
-- Answers {"ok", 0, about, counters...}, or {"again", 0} while more leases have
-- ended than one sweep takes.
if SHUT then return SHUT end
local lines = S.n
local more = sweep()
if S.n > lines then
  settle()
  flush()
end
if more then return { 'again', 0 } end
return { 'ok', 0, redis.call('HGET', K_STOCK, 'about') or '', unpack(counters()) }
