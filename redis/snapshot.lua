-- snapshot: the counters as they are this instant; writes nothing. An ended
-- lease counts as free, or as offered when it came from an offer.
-- Answers {"ok", 0, about, counters...}.
if SHUT then return SHUT end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', K_LEASES, '-inf', NOW)) do
  local h = get_hold(id)
  S.held = S.held - h[H_UNITS]
  if h[H_ENTRY] ~= '' then S.offered = S.offered + h[H_UNITS] end
end
return { 'ok', 0, redis.call('HGET', K_STOCK, 'about') or '', unpack(counters()) }
