-- stock: a movement of physical stock, once by event id.
-- ARGV +1 event id, +2 kind, +3 units (restock) or delta (correction), +4 "1" to
-- allow a shortfall, +5 actor, +6 reason.
-- Answers {"ok", wake, applied, reason, delta, counters...}. A repeat answers
-- the kept outcome with the counters as they are now.
if SHUT then return SHUT end
local event, kind, units = arg(1), arg(2), num(3)
sweep()
local kept = redis.call('HGET', K_EVENTS, event)
local applied, reason, delta
if kept then
  local o = cjson.decode(kept)
  applied, reason, delta = o[1], o[2], o[3]
else
  applied, reason, delta = 1, '', units
  local after = S.on_hand + units
  if after + S.sold > 1000000000 then
    applied, reason, delta = 0, 'too-many', 0
  elseif kind == 'correction' and (after < 0 or (units < 0 and after < S.held + S.offered and arg(4) ~= '1')) then
    applied, reason, delta = 0, 'would-oversell', 0
  end
  redis.call('HSET', K_EVENTS, event, cjson.encode({ applied, reason, delta, NOW }))
  purge_later('v:' .. event, KEEP)
  if applied == 1 then
    add('on_hand', delta)
    add(kind == 'restock' and 'received' or 'corrected', delta)
    if delta > 0 then add('gen', 1) end
    ledger('stock', kind, delta, event, { actor = arg(5), reason = arg(6) })
  end
end
settle()
return finish('ok', applied, reason, delta, unpack(counters()))
