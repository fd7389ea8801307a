-- open: sets the fence.
-- ARGV +1 the replication id that the caller began with, +2 "1" for a new SKU,
-- +3 epoch. A new SKU must have no key at all: a missing stock key beside other
-- keys is a loss, not a new SKU. Otherwise the server must still be the one that
-- was checked, and no rebuild has begun since; then no ending is accepted for 60 s.
-- Answers {verdict, wake}: ok, existing, moved.
local id = FENCED and replication_id() or ''
if arg(2) == '1' then
  if not MISSING then return SHUT or { 'existing', 0 } end
  if redis.call('EXISTS', unpack(KEYS)) > 0 then return SHUT end
  redis.call('HSET', K_STOCK, 'fence', id, 'on_hand', 0, 'epoch', num(3), 'layout', LAYOUT)
  S.epoch = num(3)
else
  if MISSING or FOREIGN then return SHUT end
  if id ~= arg(1) or redis.call('HEXISTS', K_STOCK, 'rebuild') == 1 then return { 'moved', 0 } end
  if S.fence == id then return { 'existing', 0 } end
  redis.call('HSET', K_STOCK, 'fence', id)
  set('quiet', NOW + 60000)
  if num(3) > S.epoch then set('epoch', num(3)) end
end
ledger('open', arg(2) == '1' and 'new' or 'checked', 0, id, { actor = 'reconcile' })
return finish('ok')
