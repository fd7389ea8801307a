-- snapshot: the counters as they are this instant. An ended lease counts as free,
-- or as offered when it came from an offer: see tidy.
-- Answers {"ok", 0, about, counters...}, or {"again", 0} while more leases have ended
-- than one sweep takes.
if SHUT then return SHUT end
if tidy() then return { 'again', 0 } end
return { 'ok', 0, redis.call('HGET', K_STOCK, 'about') or '', unpack(counters()) }
