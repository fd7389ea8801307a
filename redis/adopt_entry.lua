-- adopt (entry): its workflow runs and knows. A waiting entry becomes eligible
-- at the place of its arrival; what ended is known
-- and leaves the outbox.
-- ARGV +1 entry id. Answers {verdict, wake, position, 0, record}.
if SHUT then return SHUT end
local id = arg(1)
sweep()
local e = get_entry(id)
if not e then return finish_entry('unknown', id) end
outbox_drop('s:' .. id)
outbox_drop('e:' .. id)
-- An offer that was pressed and paid before it was acknowledged.
if not entry_live(e) and e[E_HOLD] ~= '' then outbox_drop('o:' .. e[E_HOLD]) end
if entry_live(e) and e[E_ACK] == 0 then
  e[E_ACK] = 1
  acknowledged(tonumber(e[E_ARRIVAL]))
  put_entry(id, e)
  redis.call('ZREM', K_FRESH, id)
  if e[E_STATE] == 'waiting' then redis.call('ZADD', K_LINE, e[E_ARRIVAL], id) end
end
local out = finish_entry('ok', id)
-- Nobody else comes when a walk-in's lease ends under an empty line, or one's own when
-- one is at the limit.
if out[2] == 0 and S.woke + 1000 <= NOW and redis.call('EXISTS', K_LINE, K_BACK, K_LIMITED) > 0 and redis.call('EXISTS', K_LEASES) > 0 then
  out[2] = 1
  set('woke', NOW)
  flush()
end
return out
